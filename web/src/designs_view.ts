// Networks worth wiring: steps against bandwidth time, each with its network by click.
import { chart, round, whole, type Series } from './chart';
import { SERIES_COLORS } from './colors';
import type { Designs } from './data';
import { element } from './dom';
import { table } from './limit_view';
import { percent, seconds } from './words';

const INK = '#1a1a1a', NONE = '#8a939e';
const valueOf = (exact: { value: number | null }): number => exact.value ?? NaN;

// What a design is best in: no network of its size has fewer steps, or less bandwidth time.
export function optimalIn(designs: Designs, row: number): string {
  const { tl, tb } = designs.rows[row]!;
  return [...(tl === designs.tl_bound ? ['steps'] : []), ...(tb.exact === designs.tb_bound.exact ? ['bandwidth'] : [])].join(' and ') || '-';
}

// The line below which nothing is reached: right and down from each row of the frontier to the next.
export function staircase(rows: { tl: number; tb: number }[]): { x: number; y: number }[] {
  const sorted = [...rows].sort((a, b) => a.tl - b.tl || b.tb - a.tb);
  return sorted.flatMap((row, i) => (i === 0 ? [{ x: row.tl, y: row.tb }] : [{ x: row.tl, y: sorted[i - 1]!.tb }, { x: row.tl, y: row.tb }]));
}

export class DesignsView {
  readonly root: HTMLElement;
  chosen: number;
  private readonly place = element('div');
  private readonly reasons = element('div', { 'aria-live': 'polite', id: 'reasons' });
  private readonly rows: { root: HTMLElement; mark: (row: number) => void };

  constructor(private readonly designs: Designs, private readonly show: (row: number) => void) {
    this.chosen = designs.best >= 0 ? designs.best : 0;
    const drawn = element('section', { class: 'wide', 'aria-label': 'Pareto frontier' }, element('div', { class: 'bar' }, element('h2', {}, 'Pareto frontier'),
      element('span', { class: 'soft' }, `${designs.collective}: fewer steps are better for small sizes, less bandwidth time for large ones; a click on a point shows its network`)), this.place);
    this.rows = this.table();
    this.root = element('div', { class: 'wide column' }, drawn, element('section', { 'aria-label': 'Designs' }, element('div', { class: 'bar' }, element('h2', {}, 'Designs')), this.rows.root),
      element('section', { 'aria-label': 'Why it costs that' }, element('div', { class: 'bar' }, element('h2', {}, 'Chosen design')), this.reasons));
  }

  choose(row: number): void {
    this.chosen = row;
    const design = this.designs.rows[row]!;
    this.rows.mark(row);
    this.draw();
    this.reasons.replaceChildren(element('p', {}, `${row + 1}: ${design.recipe}, schedule by ${design.algorithm}.`), ...design.reasons.map((text) => element('p', { class: 'soft' }, `${text}.`)));
    this.show(row);
  }

  private name(row: number): string { return `${row + 1}: ${this.designs.rows[row]!.recipe}`; }

  private table(): { root: HTMLElement; mark: (row: number) => void } {
    const { rows } = this.designs;
    const timed = rows.some((row) => row.time_ps !== undefined), flows = rows.some((row) => row.f_lower !== undefined);
    const heads = ['#', 'recipe', 'steps TL', 'TB (M/B)', 'TB over least', 'diameter', 'links', 'by', ...(flows ? ['f', 'f at most'] : []), ...(timed ? ['time', 'of the bound'] : []), 'optimal in'];
    return table('Designs', heads, rows.map((row, i) => ({ cells: [String(i + 1), row.recipe, String(row.tl), valueOf(row.tb).toFixed(4), (valueOf(row.tb) / valueOf(this.designs.tb_bound)).toFixed(4), String(row.diameter), row.bidirectional ? 'both ways' : 'one way', row.algorithm,
      ...(flows ? [(row.f_lower ?? NaN).toPrecision(4), (row.f_upper ?? NaN).toPrecision(4)] : []),
      ...(timed ? [seconds(row.time_ps ?? NaN), percent((this.designs.bound_ps ?? NaN) / (row.time_ps ?? NaN))] : []), optimalIn(this.designs, i)], run: () => this.choose(i) })));
  }

  private draw(): void {
    const { designs } = this;
    const points = designs.rows.map((row) => ({ tl: row.tl, tb: valueOf(row.tb) }));
    const series: Series[] = designs.rows.map((row, i) => ({ name: this.name(i), color: SERIES_COLORS[i % SERIES_COLORS.length]!, line: false,
      points: [{ x: row.tl, y: valueOf(row.tb), text: `${row.recipe}: ${row.tl} steps, TB ${row.tb.exact} M/B` }] }));
    const most = Math.max(...points.map((point) => point.tl)), least = valueOf(designs.tb_bound);
    series.unshift({ name: '', color: NONE, quiet: true, markers: false, dash: '2 3', points: staircase(points).map((point) => ({ ...point, text: '' })) },
      { name: '', color: INK, quiet: true, markers: false, dash: '5 4', points: [{ x: designs.tl_bound, y: least, text: '' }, { x: most, y: least, text: '' }] },
      { name: '', color: INK, quiet: true, markers: false, dash: '5 4', points: [{ x: designs.tl_bound, y: least, text: '' }, { x: designs.tl_bound, y: Math.max(...points.map((point) => point.tb)), text: '' }] });
    this.place.replaceChildren(chart({ label: `Steps and bandwidth time of ${designs.rows.length} designs`, x: { title: 'steps TL', log: false, ticks: whole, format: String },
      y: { title: 'bandwidth time TB (M/B)', log: false, ticks: round, format: (value) => String(Number(value.toPrecision(5))) }, series, chosen: this.name(this.chosen), labels: 'beside',
      notes: [{ x: most, y: least, text: `least TB of any network: ${Number(least.toPrecision(5))}` }, { x: designs.tl_bound, y: (least + Math.max(...points.map((point) => point.tb))) / 2, text: `fewest steps of any network: ${designs.tl_bound}` }],
      choose: (name) => this.choose(Number(name.split(':')[0]) - 1) }));
  }
}
