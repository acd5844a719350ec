// Bound against reached as time goes: what has crossed the bottleneck cut, beside the most that its links carry by then.
import { chart, round, type Axis } from './chart';
import { SERIES_COLORS } from './colors';
import type { Bounds } from './data';
import { element } from './dom';
import { linksOut, type Run } from './model';
import { bytes, percent, rate, seconds } from './words';

export interface Progress { links: number; capacity: number; points: { x: number; y: number }[]; total: number }

// Bytes over some links by time: a point where a message takes its link and one where it has left it, at most about `most`.
export function progressOver(run: Run, links: ReadonlySet<number>, most = 400): Progress {
  const { flight, graph } = run;
  const edges = new Float64Array(most + 1);
  const time = run.time || 1;
  let total = 0;
  for (let i = 0; i < flight.count; ++i) {
    if (!links.has(flight.link[i]!)) continue;
    total += flight.bytes[i]!;
    // A message moves evenly while it has its link.
    const from = (flight.start[i]! / time) * most, to = Math.max((flight.free[i]! / time) * most, from + 1e-9);
    for (let cell = Math.floor(from); cell < to && cell < most; ++cell)
      edges[cell + 1]! += (flight.bytes[i]! * (Math.min(to, cell + 1) - Math.max(from, cell))) / (to - from);
  }
  let sum = 0;
  const points = Array.from(edges, (more, i) => ({ x: (i * time) / most, y: (sum += more) }));
  let capacity = 0;
  for (const link of links) capacity += graph.bandwidth[link]!;
  return { links: links.size, capacity, points, total };
}

// Null where there is nothing to draw: no messages, or links of unknown bandwidth.
export function progressView(run: Run, bounds: Bounds | undefined): { root: HTMLElement; progress: Progress; ofCut: boolean } | null {
  const { graph, schedule } = run;
  if (run.flight.count === 0 || run.time <= 0) return null;
  const inside = new Set(bounds?.cut?.inside ?? []);
  const cut = inside.size > 0 ? new Set(linksOut(graph, inside)) : new Set<number>();
  const ofCut = cut.size > 0;
  const progress = progressOver(run, ofCut ? cut : new Set(graph.tail.keys()));
  if (progress.capacity <= 0 || progress.total <= 0) return null;
  const most = (ps: number): number => progress.capacity * ps * 1e-12;
  const full = Math.min(run.time, (progress.total / progress.capacity) * 1e12);
  const time: Axis = { title: 'time', log: false, ticks: round, format: seconds };
  const unit = 1024 ** Math.min(3, Math.max(0, Math.floor(Math.log2(progress.total) / 10))); // of the axis
  const size: Axis = { title: ofCut ? 'bytes over the cut' : 'bytes over all links', log: false, ticks: (low, high) => round(low / unit, high / unit).map((x) => x * unit), format: bytes };
  const what = ofCut ? `the ${progress.links} links out of the bottleneck cut` : `all ${progress.links} links`;
  const share = progress.total / most(run.time);
  const made = chart({ label: `Bytes over ${what} by time, beside the most that they carry`, x: time, y: size, marks: schedule.bound_ps !== undefined ? [{ x: schedule.bound_ps, text: `bound ${seconds(schedule.bound_ps)}` }] : [],
    series: [{ name: 'at most', color: '#1a1a1a', dash: '5 4', markers: false, quiet: true, points: [{ x: 0, y: 0, text: '' }, { x: full, y: most(full), text: '' }] },
      { name: 'reached', color: SERIES_COLORS[0]!, markers: false, quiet: true, points: progress.points.map((point) => ({ ...point, text: '' })) }] });
  const words = element('p', { class: 'soft', id: 'progress-words' }, `${ofCut ? 'Bottleneck cut' : 'All links'}: ${rate(progress.capacity)} together, used ${percent(share)} over the whole time. Where the line runs flatter than the dashed one, ${ofCut ? 'the cut waits' : 'links wait'}: no later step makes that good.`);
  const root = element('section', { class: 'wide', 'aria-label': 'Bound against reached by time' }, element('div', { class: 'bar' }, element('h2', {}, 'Bound against reached, by time'), element('span', { class: 'soft' }, what)), made, words);
  return { root, progress, ofCut };
}
