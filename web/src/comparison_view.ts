// Algorithms over sizes: time, bus bandwidth or share of the bound, with the sizes at which the fastest changes.
import { chart, decades, powersOfTwo, round, type Axis, type Mark, type Series } from './chart';
import { SERIES_COLORS } from './colors';
import type { Comparison, Curve } from './data';
import { element } from './dom';
import { table } from './limit_view';
import { bytes, percent, rate, seconds } from './words';

type Measure = 'time' | 'busbw' | 'share';
const BOUND = 'bound', INK = '#1a1a1a';

// Of each algorithm its times by size: as they were simulated, or the rows where that was too much.
export function curvesOf(comparison: Comparison): Curve[] {
  if (comparison.curves.length > 0) return comparison.curves;
  const names = [...new Set(comparison.rows.map((row) => row.algorithm))];
  return names.map((name) => {
    const rows = comparison.rows.filter((row) => row.algorithm === name).sort((a, b) => a.size_bytes - b.size_bytes);
    return { name, size_bytes: rows.map((row) => row.size_bytes), time_ps: rows.map((row) => row.time_ps) };
  });
}

// "direct up to 12.8 KiB, bfb up to 1.1 MiB, then ten"
export function bestInWords(best: Comparison['best']): string {
  if (best.length === 0) return 'which is fastest at which size is not known: too many transfers to simulate';
  const parts = best.map((range, i) => { const next = best[i + 1]; return next ? `${range.algorithm} up to ${bytes(next.from_bytes - 1)}` : `${best.length > 1 ? 'then ' : ''}${range.algorithm}${best.length > 1 ? '' : ' at every size'}`; });
  return parts.join(', ');
}

const crossings = (comparison: Comparison): Mark[] => comparison.best.slice(1).map((range) => ({ x: range.from_bytes, text: `${range.algorithm} from ${bytes(range.from_bytes)}` }));

export class ComparisonView {
  readonly root: HTMLElement;
  chosen: string | null = null;
  private measure: Measure = 'time';
  private readonly place = element('div');
  private readonly rows: { root: HTMLElement; mark: (...rows: number[]) => void };

  constructor(private readonly comparison: Comparison) {
    const choice = element('select', { 'aria-label': 'What is drawn over the sizes' }, element('option', { value: 'time' }, 'time'), element('option', { value: 'busbw' }, 'bus bandwidth'), element('option', { value: 'share' }, 'share of the bound'));
    choice.addEventListener('change', () => {
      this.measure = choice.value as Measure;
      this.draw();
    });
    const drawn = element('section', { class: 'wide', 'aria-label': 'Algorithms over sizes' },
      element('div', { class: 'bar' }, element('h2', {}, 'Algorithms over sizes'), choice, element('span', { class: 'soft' }, `${comparison.how}; a click on a line chooses it`)), this.place,
      element('p', {}, `Fastest: ${bestInWords(comparison.best)}.`),
      ...(comparison.curves.length === 0 && comparison.rows.length > 0 ? [element('p', { class: 'note' }, 'Too many transfers to simulate all sizes: drawn are those asked for, and the fastest is by the analytic cost.')] : []),
      ...(comparison.rows.length === 0 ? [element('p', { class: 'note' }, 'No algorithm makes a schedule here; below stands why.')] : []));
    this.rows = this.table();
    const missing = comparison.missing.map((one) => element('p', { class: 'soft' }, `${one.algorithm}: ${one.reason}`));
    this.root = element('div', { class: 'wide column' }, drawn, element('section', { 'aria-label': 'Rows' }, element('div', { class: 'bar' }, element('h2', {}, 'Sizes asked for')), this.rows.root),
      ...(missing.length > 0 ? [element('section', { 'aria-label': 'Not in the table' }, element('div', { class: 'bar' }, element('h2', {}, 'Not in the table')), ...missing)] : []));
    this.draw();
  }

  private choose(name: string | null): void {
    this.chosen = name === this.chosen ? null : name;
    this.rows.mark(...this.comparison.rows.flatMap((row, i) => (row.algorithm === this.chosen ? [i] : [])));
    this.draw();
  }

  private table(): { root: HTMLElement; mark: (...rows: number[]) => void } {
    const { rows, bus_factor: factor } = this.comparison;
    return table('Sizes asked for', ['algorithm', 'size', 'steps', 'time', 'analytic', 'bound', 'of the bound', 'busbw'], rows.map((row) => ({
      cells: [row.algorithm, bytes(row.size_bytes), row.steps < 0 ? 'timed' : String(row.steps), seconds(row.time_ps), seconds(row.analytic_ps), seconds(row.bound_ps), percent(row.time_ps > 0 ? row.bound_ps / row.time_ps : 1), rate(busbw(row.size_bytes, row.time_ps, factor ?? 1))],
      run: () => this.choose(row.algorithm) })));
  }

  private draw(): void {
    const { comparison, measure } = this;
    const bound = new Map(comparison.bound.size_bytes.map((size, i): [number, number] => [size, comparison.bound.time_ps[i]!]));
    const value = (size: number, time: number): number => (measure === 'time' ? time : measure === 'busbw' ? busbw(size, time, comparison.bus_factor ?? 1) : (bound.get(size) ?? 0) / time);
    const words = { time: seconds, busbw: rate, share: percent }[measure];
    const line = (curve: Curve, color: string, more: Partial<Series> = {}): Series => ({ name: curve.name, color, points: curve.size_bytes.flatMap((size, i) => {
      const y = value(size, curve.time_ps[i]!);
      return curve.time_ps[i]! > 0 && y > 0 ? [{ x: size, y, text: `${curve.name}: ${words(y)} at ${bytes(size)}` }] : [];
    }), ...more });
    const curves = curvesOf(comparison);
    const series = curves.map((curve, i) => line(curve, SERIES_COLORS[i % SERIES_COLORS.length]!, i >= SERIES_COLORS.length ? { dash: '7 3' } : {}));
    series.push(line({ ...comparison.bound, name: BOUND }, INK, { dash: '5 4', markers: false, quiet: true }));
    if (series.every((one) => one.points.length === 0)) return this.place.replaceChildren(element('p', { class: 'note' }, comparison.rows.length === 0 ? 'There is nothing to draw.' : 'There is nothing to draw: nothing is sent, and every time is 0.'));
    const axes: Record<Measure, Axis> = {
      time: { title: 'time', log: true, ticks: decades, format: seconds }, busbw: { title: 'bus bandwidth', log: true, ticks: decades, format: rate },
      share: { title: 'share of the bound', log: false, ticks: round, format: (share) => `${Math.round(share * 100)} %` } };
    this.place.replaceChildren(chart({ label: `${axes[measure].title} of ${curves.length} algorithms over sizes`, x: { title: 'size M', log: true, ticks: powersOfTwo, format: bytes }, y: axes[measure], series,
      marks: crossings(comparison), chosen: this.chosen, choose: (name) => this.choose(name) }));
  }
}

export const busbw = (size: number, ps: number, factor: number): number => (ps > 0 ? (size / (ps * 1e-12)) * factor : 0);
