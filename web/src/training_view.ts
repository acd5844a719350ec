// Iterations of a training job: their parts, and what computes and communicates when.
import { clock, type Clock } from './clock';
import type { Schedule, Training, TrainingRow } from './data';
import { element } from './dom';
import { table } from './limit_view';
import { Run, type Graph } from './model';
import { Store } from './selection';
import { TimelineView } from './timeline_view';
import { instants, percent, seconds } from './words';

const ACTIVITIES = ['compute', 'all-to-all', 'all-reduce of gradients', 'all-reduce of results'] as const;
const COLORS = ['#0072b2', '#009e73', '#d55e00', '#b5518f'];
const LANES = 2; // of an algorithm: what computes, what communicates
type Part = [name: string, color: string, ps: number];

export function partsOf(row: TrainingRow): Part[] {
  return ([['forward', '#56b4e9', row.forward_ps], ['backward', '#0072b2', row.backward_ps], ['all-reduces of results', '#b5518f', row.tensor_ps], ['all-to-all', '#009e73', row.all_to_all_ps],
    ['gradients that show', '#d55e00', row.exposed_ps]] as Part[]).filter(([, , ps]) => ps > 0);
}

// Lane after lane as if they were links, events as messages over them.
export function lanesOf(training: Training): { graph: Graph; schedule: Schedule; names: string[] } {
  const labels = training.rows.flatMap((row) => [`${row.algorithm}: compute`, `${row.algorithm}: network`]);
  const one = labels.map((_, i) => i), none = labels.map(() => 0);
  const graph: Graph = { name: training.workload, nodes: labels.length, ranks: labels.length, ranksOfNetwork: labels.length, grouped: false, labels, grid: null, tail: one, head: one, bandwidth: none, alpha: null, links: labels.map(() => 1) };
  const events = training.rows.flatMap((row, at) => row.events.start_ps.map((start, i) => ({ lane: LANES * at + (row.events.activity[i] === 0 ? 0 : 1), start, end: row.events.end_ps[i]!, activity: row.events.activity[i]!, name: row.events.name[i]! })));
  events.sort((a, b) => a.start - b.start || a.lane - b.lane);
  const ends = events.map((event) => event.end);
  const schedule: Schedule = { network: training.network, label: training.workload, collective: '', algorithm: '', kind: 'timed', steps: ACTIVITIES.length, shards: 0, units_per_shard: 1, transfers_total: 0, size_bytes: 0,
    verified: null, faults_total: 0, faults: [], note: '',
    simulation: { link_model: '', mode: '', time_ps: Math.max(1, ...training.rows.map((row) => row.iteration_ps)), algbw: null, busbw: null, messages: events.length, max_in_flight: 0, use: { busy_ps: none, bytes: none } },
    messages: { link: events.map((event) => event.lane), step: events.map((event) => event.activity), start_ps: events.map((event) => event.start), free_ps: ends, arrive_ps: ends, bytes: ends.map(() => 0), first: ends.map((_, i) => i) } };
  return { graph, schedule, names: events.map((event) => event.name) };
}

function bars(rows: TrainingRow[]): HTMLElement {
  const most = Math.max(1, ...rows.map((row) => row.iteration_ps));
  const grid = element('div', { class: 'bound-bars' });
  for (const row of rows) {
    const track = element('div', { class: 'track parts', role: 'img', 'aria-label': `${row.algorithm}: ${partsOf(row).map(([name, , ps]) => `${name} ${seconds(ps)}`).join(', ')}` });
    for (const [name, color, ps] of partsOf(row)) track.append(element('div', { class: 'fill', title: `${name}: ${seconds(ps)}`, style: `width:${((100 * ps) / most).toFixed(3)}%;background:${color}` }));
    grid.append(element('span', {}, row.algorithm), track, element('span', {}, seconds(row.iteration_ps)));
  }
  const seen = new Map(rows.flatMap(partsOf).map(([name, color]) => [name, color]));
  const legend = element('p', { class: 'soft' }, ...[...seen].flatMap(([name, color]) => [element('span', { class: 'swatch', style: `background:${color}` }), ` ${name}   `]));
  return element('section', { class: 'wide', 'aria-label': 'Parts of the iteration' }, element('div', { class: 'bar' }, element('h2', {}, 'Parts of the iteration')), grid, legend);
}

export interface TrainingView { roots: HTMLElement[]; timeline: TimelineView | null; store: Store; clock: Clock | null }

export function trainingView(training: Training): TrainingView {
  const { graph, schedule, names } = lanesOf(training), run = new Run(graph, schedule), store = new Store();
  const bound = training.rows.find((row) => row.algorithm === 'bound')?.iteration_ps ?? NaN;
  const figures = table('Iterations', ['all-reduce by', 'iteration', 'forward', 'backward', 'results', 'all-to-all', 'gradients that show', 'gradients busy', 'of the bound'], training.rows.map((row, at) => ({
    cells: [row.algorithm, seconds(row.iteration_ps), ...[row.forward_ps, row.backward_ps, row.tensor_ps, row.all_to_all_ps, row.exposed_ps, row.gradients_ps].map(seconds), percent(bound / row.iteration_ps)],
    run: () => store.select({ kind: 'link', link: LANES * at + 1 }) })));
  const roots = [element('section', { class: 'wide', 'aria-label': 'Iterations' }, element('div', { class: 'bar' }, element('h2', {}, 'Iterations'), element('span', { class: 'soft' }, training.how)), figures.root), bars(training.rows)];
  if (training.omitted) roots.push(element('p', { class: 'note' }, training.omitted));
  if (run.flight.count === 0) return { roots, timeline: null, store, clock: null };
  const text = (i: number): string => names[i] ?? '';
  const timeline = new TimelineView(run, store, (time) => ticking.set(time), { title: 'What runs when', rowName: (lane) => graph.labels[lane]!, text, color: (i) => COLORS[run.flight.step[i]!]! });
  const ticking = clock(run.time, (time) => timeline.setNow(time));
  const out = element('p', { 'aria-live': 'polite', id: 'event' }, 'Nothing is chosen. Left and right choose the event before or after.');
  store.onChange((s) => {
    if (s.kind !== 'message') return;
    const { flight } = run, i = s.message;
    out.textContent = `${graph.labels[flight.link[i]!]}: ${ACTIVITIES[flight.step[i]!]} ${text(i)} from ${instants(flight.start[i]!, flight.free[i]!).join(' to ')}, ${seconds(flight.free[i]! - flight.start[i]!)}.`;
  });
  const legend = element('p', { class: 'soft' }, ...ACTIVITIES.flatMap((name, i) => (run.flight.step.includes(i) ? [element('span', { class: 'swatch', style: `background:${COLORS[i]}` }), ` ${name}   `] : [])));
  timeline.root.append(ticking.root, legend, out);
  roots.push(timeline.root);
  return { roots, timeline, store, clock: ticking };
}
