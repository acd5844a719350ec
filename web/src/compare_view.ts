// Several results side by side: their figures, bound against reached on one scale, networks and timelines on one
// clock, step by step, and the links that they use unlike.
import type { PageData, Schedule } from './data';
import { clock, type Clock } from './clock';
import { SERIES_COLORS } from './colors';
import { element } from './dom';
import { bars, table } from './limit_view';
import { Run, graphOf, linkName, type StepSum } from './model';
import { NetworkView } from './network_view';
import { Store, type Selection } from './selection';
import { TimelineView, roomForNames } from './timeline_view';
import { bytes, count, percent, rate, seconds } from './words';

interface Side { name: string; color: string; schedule: Schedule; run: Run; store: Store; network: NetworkView; timeline: TimelineView | null }

export interface CompareView { root: HTMLElement; sides: Side[]; clock: Clock | null; stop: () => void }

export const isExecuted = (schedule: Schedule): boolean => schedule.simulation?.mode === 'executed';
const how = (schedule: Schedule): string => (schedule.simulation === undefined ? 'not simulated' : isExecuted(schedule) ? 'executed' : `simulated, ${schedule.simulation.mode}, links ${schedule.simulation.link_model}`);
const shareOf = (part: number, whole: number): number => (whole > 0 ? part / whole : 0);

function meanUse(run: Run): number {
  const busy = run.schedule.simulation?.use.busy_ps ?? [];
  return busy.length > 0 ? shareOf(busy.reduce((sum, one) => sum + one, 0), run.time * busy.length) : 0;
}

function figures(sides: Side[], open: (at: number) => void): HTMLElement {
  const leastOf = (size: number): number => Math.min(...sides.filter((side) => side.schedule.simulation && side.schedule.size_bytes === size).map((side) => side.run.time));
  const made = table('Figures of each result', ['result', 'how', 'size', 'time', 'to the fastest', 'of the bound', 'busbw', 'steps', 'messages', 'mean link use', 'proof'], sides.map((side, at) => {
    const { schedule, run } = side, sim = schedule.simulation, least = leastOf(schedule.size_bytes);
    return { cells: [side.name, how(schedule), bytes(schedule.size_bytes), sim ? seconds(run.time) : '-', sim && least > 0 ? `${(run.time / least).toFixed(2)} x` : '-',
      sim && schedule.bound_ps !== undefined ? percent(run.time > 0 ? schedule.bound_ps / run.time : 1) : '-', rate(sim?.busbw ?? null), schedule.kind === 'step' ? count(schedule.steps) : 'timed',
      count(sim?.messages ?? 0), sim ? percent(meanUse(run)) : '-', schedule.verified === null ? 'not judged' : schedule.verified ? 'proven correct' : 'NOT correct'],
    run: () => open(at) };
  }));
  return element('section', { class: 'wide', 'aria-label': 'Figures of each result' }, element('div', { class: 'bar' }, element('h2', {}, 'Figures'), element('span', { class: 'soft' }, 'a row chosen opens that result')), made.root);
}

function limits(sides: Side[]): HTMLElement {
  const rows: [string, number, string, string][] = [];
  let before: number | undefined; // the bound of the rows above
  for (const side of sides) {
    const bound = side.schedule.bound_ps;
    if (bound !== undefined && bound !== before) rows.push([sides.every((other) => other.schedule.bound_ps === bound) ? 'bound' : sides.every((other) => other.schedule.size_bytes === side.schedule.size_bytes) ? `bound of ${side.name}` : `bound for ${bytes(side.schedule.size_bytes)}`, bound, seconds(bound), '#8a939e']);
    before = bound;
    if (side.schedule.simulation) rows.push([side.name, side.run.time, seconds(side.run.time), side.color]);
  }
  return element('section', { class: 'wide', 'aria-label': 'Bound against reached' }, element('div', { class: 'bar' }, element('h2', {}, 'Bound against reached'),
    element('span', { class: 'soft' }, 'one scale; no schedule is faster than the bound')), bars(rows));
}

// What lasts how long in which step; null where there are no steps to compare.
function steps(sides: Side[]): HTMLElement | null {
  const sums = sides.map((side) => side.run.steps());
  if (sums.some((all) => all.length === 0)) return null;
  const most = 200;
  const byStep = sums.map((all) => new Map(all.map((sum): [number, StepSum] => [sum.step, sum])));
  const numbers = [...new Set(sums.flatMap((all) => all.map((sum) => sum.step)))].sort((a, b) => a - b);
  const made = table('Step by step', ['step', ...sides.flatMap((side) => [`${side.name}: from`, 'lasts'])], numbers.slice(0, most).map((step) => ({
    cells: [String(step + 1), ...byStep.flatMap((of) => { const sum = of.get(step); return sum ? [seconds(sum.start), seconds(sum.end - sum.start)] : ['-', '-']; })],
    run: () => sides.forEach((side) => side.store.select({ kind: 'step', step })) })));
  return element('section', { class: 'wide', 'aria-label': 'Step by step' }, element('div', { class: 'bar' }, element('h2', {}, 'Step by step'),
    element('span', { class: 'soft' }, numbers.length > most ? `the first ${most} of ${count(numbers.length)}` : 'a row chosen marks its messages')), made.root);
}

// Rows by how far their values lie apart, equal ones in order.
export function mostUnlikeFirst(rows: number[][]): number[] {
  const spread = rows.map((row) => Math.max(...row) - Math.min(...row));
  return rows.map((_, i) => i).sort((a, b) => spread[b]! - spread[a]! || a - b);
}

// The links of a network that all share, those first that are used most unlike.
function links(sides: Side[]): HTMLElement | null {
  const { graph } = sides[0]!.run;
  if (sides.some((side) => side.schedule.network !== sides[0]!.schedule.network || !side.schedule.simulation) || graph.tail.length === 0) return null;
  const most = 200;
  const use = sides.map((side) => side.schedule.simulation!.use);
  const share = (at: number, link: number): number => shareOf(use[at]!.busy_ps[link]!, sides[at]!.run.time * graph.links[link]!);
  const order = mostUnlikeFirst(graph.tail.map((_, link) => sides.map((_side, at) => share(at, link))));
  const made = table('Links used unlike', ['link', ...sides.flatMap((side) => [`${side.name}: busy`, 'carries'])], order.slice(0, most).map((link) => ({
    cells: [linkName(graph, link), ...sides.flatMap((_side, at) => [percent(share(at, link)), bytes(use[at]!.bytes[link]!)])],
    run: () => sides[0]!.store.select({ kind: 'link', link }) })));
  sides[0]!.store.onChange((s) => made.mark(s.kind === 'link' ? order.indexOf(s.link) : -1));
  return element('section', { class: 'wide', 'aria-label': 'Links used unlike' }, element('div', { class: 'bar' }, element('h2', {}, 'Use of links'),
    element('span', { class: 'soft' }, `those used most unlike first${order.length > most ? `, ${most} of ${count(order.length)}` : ''}`)), made.root);
}

// A node or link chosen in one is chosen in all of the same network.
function shareChoices(sides: Side[]): void {
  let busy = false;
  for (const side of sides)
    side.store.onChange((s: Selection) => {
      if (busy || (s.kind !== 'node' && s.kind !== 'link' && s.kind !== 'none')) return;
      busy = true;
      for (const other of sides) if (other !== side && other.schedule.network === side.schedule.network) other.store.select(s);
      busy = false;
    });
}

function timelines(sides: Side[], spanOf: (side: Side) => number, setTime: (time: number, side: Side) => void): void {
  let busy = false;
  const labels = Math.max(0, ...sides.map((side) => roomForNames(side.run))); // axes below each other begin at one place
  for (const side of sides) {
    if (side.run.flight.count === 0) continue;
    side.timeline = new TimelineView(side.run, side.store, (time) => setTime(time, side), { title: side.name, labels, span: spanOf(side), onWindow: (from, perPixel) => {
      if (busy) return;
      busy = true;
      for (const other of sides) if (other !== side) other.timeline?.setWindow(from, perPixel);
      busy = false;
    } });
  }
}

export function compareView(data: PageData, open: (at: number) => void): CompareView {
  const sides = data.schedules.map((schedule, i): Side => {
    const graph = graphOf(data.networks[schedule.network]!), run = new Run(graph, schedule), store = new Store();
    const name = schedule.label || schedule.algorithm;
    return { name, color: SERIES_COLORS[i % SERIES_COLORS.length]!, schedule, run, store, network: new NetworkView(graph, run, store, name), timeline: null };
  });
  shareChoices(sides);
  const longest = Math.max(1, ...sides.map((side) => side.run.time));
  // One clock for all, or each as long as itself: where one is many times longer, the others would be specks.
  const shortest = Math.min(...sides.filter((side) => side.run.time > 0).map((side) => side.run.time));
  let same = !(longest > 8 * shortest);
  const spanOf = (side: Side): number => (same ? longest : side.run.time);
  const moving = sides.some((side) => side.run.flight.count > 0);
  const ticking = moving ? clock(longest, (time) => sides.forEach((side) => {
    const at = Math.min(side.run.time, (time / longest) * spanOf(side));
    side.network.setTime(at);
    side.timeline?.setNow((time / longest) * spanOf(side));
  })) : null;
  timelines(sides, spanOf, (time, side) => ticking?.set((time / Math.max(1, spanOf(side))) * longest));
  const say = (time: number): string => (same ? `${seconds(time)} of ${seconds(longest)}` : `${percent(time / longest)} of each`);
  ticking?.setSpan(longest, say);
  const choice = element('select', { 'aria-label': 'Clock of the results' }, element('option', { value: 'one' }, 'one clock for all'), element('option', same ? { value: 'own' } : { value: 'own', selected: true }, 'each its own length'));
  choice.addEventListener('change', () => {
    same = choice.value === 'one';
    sides.forEach((side) => side.timeline?.setSpan(spanOf(side)));
    ticking?.setSpan(longest, say);
  });
  const main = element('main', {}, figures(sides, open), limits(sides));
  if (ticking) {
    choice.classList.add('clock-choice');
    ticking.root.append(choice);
    main.append(element('section', { class: 'wide', 'aria-label': 'Clock' }, ticking.root));
  }
  for (const side of sides) side.network.setUse(true);
  main.append(element('div', { class: 'wide sides' }, ...sides.map((side) => side.network.root)));
  for (const side of sides) if (side.timeline) main.append(side.timeline.root);
  for (const part of [steps(sides), links(sides)]) if (part) main.append(part);
  ticking?.set(0);
  return { root: main, sides, clock: ticking, stop: () => ticking?.stop() };
}
