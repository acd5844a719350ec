// The page: reads its data and puts the views together. What is wrong is said in place of a view, never a blank.
import './style.css';
import { clock } from './clock';
import { compareView, isExecuted, type CompareView } from './compare_view';
import { ComparisonView } from './comparison_view';
import { DesignsView } from './designs_view';
import { readData, type Bounds, type Comparison, type Designs, type Flow, type Operations, type PageData, type Schedule, type Training } from './data';
import { DetailsView } from './details';
import { button, element } from './dom';
import { flowView, rateOf } from './flow_view';
import { HeatView } from './heat_view';
import { cutButton, cutWords, limitView, limitsTable, scrollTo } from './limit_view';
import { Run, graphOf } from './model';
import { NetworkView } from './network_view';
import { Store, type Selection } from './selection';
import { TimelineView } from './timeline_view';
import { operationsView } from './operations_view';
import { progressView, type Progress } from './progress_view';
import { trainingView } from './training_view';
import { waitsView } from './waits_view';
import type { Waits } from './waits';
import { bytes, count, percent, plural, rate, seconds } from './words';

declare global {
  interface Window {
    // For tests and scripts: where things are drawn, and what is chosen.
    tutti?: { data: PageData; store?: Store; network?: NetworkView; timeline?: TimelineView | null; heat?: HeatView | null; setTime: (ps: number) => void; time: () => number; select: (s: Selection) => void; compared?: CompareView; waits?: () => Waits | null; progress?: Progress | null; choose?: (row: number) => void };
  }
}

const page = document.getElementById('page') ?? document.body;

function complain(message: string): void {
  page.replaceChildren(element('p', { role: 'alert' }, `This page cannot be shown: ${message}.`));
  document.documentElement.dataset['state'] = 'failed';
}

function badge(schedule: Schedule): HTMLElement {
  if (isExecuted(schedule)) return element('span', { class: 'badge open' }, 'executed');
  if (schedule.verified === null) return element('span', { class: 'badge open' }, 'not judged');
  if (schedule.verified) return element('span', { class: 'badge good' }, '\u2713 proven correct');
  return element('span', { class: 'badge bad' }, `\u2717 NOT correct: ${plural(schedule.faults_total, 'violation')}`);
}

const ALL = -1; // in place of a schedule: all side by side
const MOST_SIDES = 16;

function chooser(data: PageData, at: number, show: (at: number) => void): HTMLElement {
  const choice = element('select', { 'aria-label': 'Schedule shown' });
  const offer = (i: number, text: string): void => choice.append(element('option', i === at ? { value: i, selected: true } : { value: i }, text));
  data.schedules.forEach((one, i) => offer(i, one.label || one.algorithm));
  if (data.schedules.length <= MOST_SIDES) offer(ALL, 'all side by side');
  choice.addEventListener('change', () => show(Number(choice.value)));
  return choice;
}

// "all-reduce on torus(4,4)" where all are of that, else how many there are.
function titleOfAll(data: PageData): string {
  const network = data.networks[data.schedules[0]!.network]!;
  const kinds = new Set(data.schedules.map((one) => one.collective)), names = new Set(data.schedules.map((one) => data.networks[one.network]!.name.replace(/, pairs of ranks$/, '')));
  const what = kinds.size === 1 ? data.schedules[0]!.collective : `${kinds.size} collectives`;
  return `${what} on ${names.size === 1 ? network.name || 'an unnamed network' : `${names.size} networks`}: ${plural(data.schedules.length, 'result')} side by side`;
}

function showAll(data: PageData): void {
  stopClock();
  const title = titleOfAll(data);
  document.title = `${title} \u2013 Tutti`;
  const compared = compareView(data, (at) => show(data, at));
  stopClock = compared.stop;
  const lines = data.schedules.flatMap((one): [string, string][] => [...(one.verified === false ? [['note fault', `${one.label} is NOT correct: ${plural(one.faults_total, 'violation')}.`] as [string, string]] : []),
    ...[one.note ? `${one.note}.` : '', one.omitted ?? ''].filter((text) => text !== '').map((text): [string, string] => ['note', `${one.label}: ${text}`])]);
  page.replaceChildren(element('header', {}, element('h1', {}, title), chooser(data, ALL, (at) => show(data, at))), ...lines.map(([kind, text]) => element('p', { class: kind }, text)), compared.root);
  window.tutti = { data, setTime: (ps) => compared.clock?.set(ps), time: () => compared.clock?.now() ?? 0, select: (s) => compared.sides[0]?.store.select(s), compared };
}

// Beside a view of its own: the network that it is of, with its cut where that is known.
function networkBeside(data: PageData, at: number, store: Store): { root: HTMLElement; network: NetworkView; details: HTMLElement } {
  const graph = graphOf(data.networks[at]!);
  const network = new NetworkView(graph, null, store);
  return { root: network.root, network, details: new DetailsView(graph, null, store).root };
}

function plainHeader(title: string, words: string): HTMLElement {
  document.title = `${title} \u2013 Tutti`;
  return element('header', {}, element('h1', {}, title), element('span', { class: 'figures' }, words));
}

function showComparison(data: PageData, comparison: Comparison): void {
  const network = data.networks[comparison.network]!, store = new Store();
  const view = new ComparisonView(comparison), beside = networkBeside(data, comparison.network, store);
  const algorithms = new Set(comparison.rows.map((row) => row.algorithm));
  page.replaceChildren(plainHeader(`${comparison.collective} on ${network.name || 'an unnamed network'}: ${plural(algorithms.size, 'algorithm')}`, `${plural(network.ranks, 'rank')}, ${plural(network.links_total, 'link')}, every schedule proven correct`),
    element('main', {}, view.root, beside.root, element('div', { class: 'column' }, beside.details)));
  window.tutti = { data, store, network: beside.network, setTime: () => undefined, time: () => 0, select: (s) => store.select(s) };
}

function showFlow(data: PageData, flows: Flow[], at: number): void {
  const flow = flows[at]!, network = data.networks[flow.network]!, store = new Store();
  const beside = networkBeside(data, flow.network, store), view = flowView(flow, graphOf(network), beside.network, store);
  const top = plainHeader(`all-to-all on ${network.name || 'an unnamed network'}`, `${plural(network.ranks, 'rank')}, ${plural(network.links_total, 'link')}`);
  if (flows.length > 1) {
    const choice = element('select', { 'aria-label': 'Network shown' });
    flows.forEach((one, i) => choice.append(element('option', i === at ? { value: i, selected: true } : { value: i }, `${data.networks[one.network]!.name}: ${rate(rateOf(one))} a pair`)));
    choice.addEventListener('change', () => showFlow(data, flows, Number(choice.value)));
    top.append(choice);
  }
  page.replaceChildren(top, element('main', {}, beside.root, element('div', { class: 'column' }, view.side, beside.details), view.links));
  window.tutti = { data, store, network: beside.network, setTime: () => undefined, time: () => 0, select: (s) => store.select(s) };
}

function showTraining(data: PageData, training: Training): void {
  const network = data.networks[training.network]!, view = trainingView(training), store = new Store();
  const beside = networkBeside(data, training.network, store);
  page.replaceChildren(plainHeader(`${training.workload} on ${network.name || 'an unnamed network'}`, `an iteration of training on ${plural(network.ranks, 'rank')}`),
    element('main', {}, ...view.roots, beside.root, element('div', { class: 'column' }, beside.details)));
  view.clock?.set(0);
  window.tutti = { data, store: view.store, network: beside.network, timeline: view.timeline, setTime: (ps) => view.clock?.set(ps), time: () => view.clock?.now() ?? 0, select: (s) => view.store.select(s) };
}

function showOperations(data: PageData, operations: Operations): void {
  const view = operationsView(operations);
  page.replaceChildren(plainHeader(operations.title, operations.how), element('main', {}, ...view.roots));
  view.clock?.set(0);
  window.tutti = { data, store: view.store, timeline: view.timeline, setTime: (ps) => view.clock?.set(ps), time: () => view.clock?.now() ?? 0, select: (s) => view.store.select(s) };
}

function showDesigns(data: PageData, designs: Designs): void {
  const below = element('div', { class: 'wide below' });
  const view = new DesignsView(designs, (row) => {
    const at = designs.rows[row]!.network, store = new Store();
    if (at < 0) return below.replaceChildren(element('p', { class: 'note' }, 'This network is too large to be kept in the page beside the others.'));
    const beside = networkBeside(data, at, store);
    below.replaceChildren(beside.root, element('div', { class: 'column' }, beside.details));
    window.tutti = { data, store, network: beside.network, setTime: () => undefined, time: () => 0, select: (s) => store.select(s), choose: (i) => view.choose(i) };
  });
  const ports = designs.one_way ? 'one-way fibres' : 'two-way cables';
  page.replaceChildren(plainHeader(`${plural(designs.rows.length, 'network')} of ${plural(designs.ranks, 'rank')} with ${plural(designs.degree, 'port')}`, `${ports}, priced for ${designs.collective}; TL in steps, TB in M/B`), element('main', {}, view.root, below));
  view.choose(view.chosen);
}

function header(data: PageData, at: number, show: (at: number) => void): HTMLElement {
  const schedule = data.schedules[at];
  const network = data.networks[schedule?.network ?? 0]!;
  const name = network.name || 'an unnamed network';
  const title = schedule ? `${schedule.collective} on ${name} by ${schedule.algorithm}` : name;
  document.title = `${title} \u2013 Tutti`;
  const top = element('header', {}, element('h1', {}, title));
  if (data.schedules.length > 1) top.append(chooser(data, at, show));
  if (schedule) {
    top.append(badge(schedule));
    const figures = element('span', { class: 'figures' });
    const add = (name_: string, value: string): void => figures.append(figures.childNodes.length > 0 ? '  \u00b7  ' : '', `${name_} `, element('b', {}, value));
    add('size', bytes(schedule.size_bytes));
    if (schedule.simulation) {
      add('time', seconds(schedule.simulation.time_ps));
      if (schedule.bound_ps !== undefined) add('of the bound', percent(schedule.simulation.time_ps > 0 ? schedule.bound_ps / schedule.simulation.time_ps : 1));
      add('busbw', rate(schedule.simulation.busbw));
    }
    add('transfers', count(schedule.transfers_total));
    if (schedule.kind === 'step') add('steps', count(schedule.steps));
    top.append(figures);
  } else {
    top.append(element('span', { class: 'figures' }, `${plural(network.ranks, 'rank')}, ${plural(network.links_total, 'link')}`));
  }
  return top;
}

function notes(schedule: Schedule | undefined, run: Run | null, store: Store): HTMLElement[] {
  if (schedule === undefined) return [];
  const out: HTMLElement[] = [];
  const note = (text: string): number => out.push(element('p', { class: 'note' }, text));
  if (schedule.note) note(`${schedule.note}.`);
  if (schedule.omitted) note(schedule.omitted);
  if (schedule.transfers_total === 0) note('This schedule has no transfers: every rank holds what it wants from the start.');
  for (const fault of schedule.faults) {
    const message = run?.messageOfTransfer(fault.transfer) ?? -1;
    const line = element('p', { class: 'note fault' }, `${fault.kind}: ${fault.message} `);
    if (message >= 0) line.append(button('Show', `Show the message of: ${fault.message}`, () => store.select({ kind: 'message', message })));
    out.push(line);
  }
  if (schedule.faults.length > 0 && schedule.kind === 'step') out.push(element('p', { class: 'note' }, 'What is said of violations counts steps from 0; everything below counts them from 1.'));
  return out;
}

let stopClock: () => void = () => undefined;

function show(data: PageData, at: number): void {
  if (at === ALL) return showAll(data);
  stopClock();
  const store = new Store();
  const schedule = data.schedules[at];
  const graph = graphOf(data.networks[schedule?.network ?? 0]!);
  const run = schedule ? new Run(graph, schedule) : null;
  const network = new NetworkView(graph, run, store);
  const timeline = run && run.flight.count > 0 ? new TimelineView(run, store, (time) => setTime(time)) : null;
  const heat = run?.schedule.simulation && graph.tail.length > 0 ? new HeatView(run, store) : null;
  const ticking = run && run.flight.count > 0 ? clock(run.time, (time) => {
    network.setTime(time);
    timeline?.setNow(time);
  }) : null;
  const setTime = (time: number): void => ticking?.set(time);
  stopClock = () => ticking?.stop();

  const limits = data.limits.filter((limit) => limit.network === (schedule?.network ?? 0));
  const words = element('p', { class: 'cut-words' });
  let bounds: Bounds | undefined = schedule?.bounds ?? (limits.find((limit) => (limit.bounds.cut?.inside.length ?? 0) > 0) ?? limits[0])?.bounds;
  const drawCut = (on: boolean): void => {
    network.setCut(on && bounds ? (bounds.cut?.inside ?? []) : []);
    words.textContent = on && bounds ? cutWords(bounds) : '';
  };
  if (bounds) network.root.querySelector('.bar .space')?.after(cutButton(drawCut));
  if (ticking) network.root.append(ticking.root);
  network.root.append(words);
  drawCut(true);

  const column = element('div', { class: 'column' });
  if (run) column.append(limitView(run, store));
  if (limits.length > 0) column.append(limitsTable(limits, graph, (chosen) => {
    bounds = chosen;
    drawCut(true);
  }));
  const waiting = run && run.flight.count > 0 ? waitsView(run, store) : null;
  const progress = run && schedule ? progressView(run, schedule.bounds) : null;
  column.append(new DetailsView(graph, run, store, () => waiting?.waits ?? null).root);
  const main = element('main', {}, network.root, column);
  if (timeline) main.append(timeline.root);
  if (waiting) main.append(waiting.root);
  if (progress) main.append(progress.root);
  if (heat) main.append(heat.root);
  if (run?.schedule.simulation && graph.tail.length > 0) main.append(busiest(run, store));
  page.replaceChildren(header(data, at, (next) => show(data, next)), ...notes(schedule, run, store), main);
  setTime(0);
  window.tutti = { data, store, network, timeline, heat, waits: () => waiting?.waits ?? null, progress: progress?.progress ?? null, setTime, time: () => ticking?.now() ?? 0, select: (s) => store.select(s) };
}

// The heat map in words.
function busiest(run: Run, store: Store): HTMLElement {
  const { graph } = run;
  const { busy_ps: busy, bytes: carried } = run.schedule.simulation!.use;
  const most = 200;
  const order = graph.tail.map((_, link) => link).sort((a, b) => busy[b]! - busy[a]! || a - b);
  const body = element('tbody');
  const lines = new Map<number, HTMLElement>();
  for (const link of order.slice(0, most)) {
    const line = element('tr', { tabindex: 0 }, ...[`${graph.labels[graph.tail[link]!]} -> ${graph.labels[graph.head[link]!]}`, percent(run.time > 0 ? busy[link]! / (run.time * graph.links[link]!) : 0), bytes(carried[link]!), rate(graph.bandwidth[link]!)].map((cell) => element('td', {}, cell)));
    line.addEventListener('click', () => store.select({ kind: 'link', link }));
    line.addEventListener('keydown', (event) => { if (event.key === 'Enter') store.select({ kind: 'link', link }); });
    lines.set(link, line);
    body.append(line);
  }
  const box = element('div', { class: 'scroll', style: 'max-height:330px' }, element('table', { 'aria-label': 'Busiest links' }, element('thead', {}, element('tr', {}, ...['link', 'busy', 'carries', 'bandwidth'].map((head) => element('th', { scope: 'col' }, head)))), body));
  store.onChange((s) => {
    const chosen = s.kind === 'link' ? s.link : s.kind === 'message' ? run.flight.link[s.message] : undefined;
    lines.forEach((line, link) => line.setAttribute('aria-selected', String(link === chosen)));
    scrollTo(box, chosen === undefined ? undefined : lines.get(chosen));
  });
  return element('section', { 'aria-label': 'Busiest links' }, element('div', { class: 'bar' }, element('h2', {}, 'Busiest links'),
    ...(order.length > most ? [element('span', { class: 'soft' }, `the first ${most} of ${count(order.length)}`)] : [])),
  box);
}

function showSchedules(data: PageData): void {
  const together = (data.command === 'explore' || data.command === 'run') && data.schedules.length > 1 && data.schedules.length <= MOST_SIDES;
  show(data, together ? ALL : 0);
}

async function start(): Promise<void> {
  try {
    const data = await readData(document.getElementById('tutti-data'));
    if (data.comparison) showComparison(data, data.comparison);
    else if (data.flows?.length) showFlow(data, data.flows, 0);
    else if (data.training) showTraining(data, data.training);
    else if (data.operations) showOperations(data, data.operations);
    else if (data.designs) showDesigns(data, data.designs);
    else showSchedules(data);
    requestAnimationFrame(() => requestAnimationFrame(() => {
      document.documentElement.dataset['state'] = 'shown';
      document.documentElement.dataset['firstPictureMs'] = performance.now().toFixed(0);
    }));
  } catch (error) {
    complain(error instanceof Error ? error.message : String(error));
  }
}

window.addEventListener('error', (event) => { if (document.documentElement.dataset['state'] !== 'shown') complain(event.message); });
void start();
