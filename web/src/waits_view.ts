// Who waits for whom: the chain that the time hangs on, and whose messages keep whose links idle.
import { isExecuted } from './compare_view';
import { element, button } from './dom';
import { table } from './limit_view';
import { linkName, type Run } from './model';
import type { Store } from './selection';
import { Waits, causeInWords } from './waits';
import { count, instants, percent, plural, seconds } from './words';

const MOST = 300, AT_ONCE = 60_000;

export interface WaitsView { root: HTMLElement; waits: Waits | null }

// Large schedules are looked at when asked for, so that the page opens at once.
export function waitsView(run: Run, store: Store): WaitsView {
  const view: WaitsView = { root: element('section', { class: 'wide waits', 'aria-label': 'Who waits for whom' }), waits: null };
  const bar = element('div', { class: 'bar' }, element('h2', {}, 'Who waits for whom'));
  const fill = (): void => {
    view.waits ??= new Waits(run);
    view.root.replaceChildren(bar, ...parts(run, store, view.waits, bar));
  };
  const size = (run.schedule.transfers?.link.length ?? 0) + run.flight.count;
  if (size <= AT_ONCE) {
    fill();
    return view;
  }
  const ask = button('Find it', 'Find who waits for whom', () => { ask.remove(); fill(); });
  view.root.append(bar, element('p', { class: 'soft' }, `${plural(run.flight.count, 'message')}: it takes a moment. `), ask);
  return view;
}

function parts(run: Run, store: Store, waits: Waits, bar: HTMLElement): HTMLElement[] {
  const { flight, graph } = run, executed = isExecuted(run.schedule);
  const last = waits.last;
  const chain = waits.chainTo(last), { moving, standing } = waits.timeOf(chain);
  const links = new Map<number, number>();
  for (const { message } of chain) links.set(flight.link[message]!, (links.get(flight.link[message]!) ?? 0) + 1);
  const kinds = (['data', 'link', 'step'] as const).map((kind): [string, number] => [causeInWords({ kind, message: 0, at: 0, idle: 0 }, executed), chain.filter((one) => one.cause.kind === kind).length]).filter(([, n]) => n > 0);
  const words = `The last message arrives at ${seconds(flight.arrive[last]!)}. Behind it stands a chain of ${plural(chain.length, 'message')} over ${plural(links.size, 'link')}, each waiting for the one before`
    + `${kinds.length > 0 ? `: ${kinds.map(([name, n]) => `${count(n)} for ${name}`).join(', ')}` : ''}. ${percent(run.time > 0 ? moving / run.time : 1)} of the time a message of it is on its way${standing > 0 ? `, for ${seconds(standing)} it stands` : ''}.`;
  const shown = chain.slice(-MOST);
  const made = table('The chain that the time hangs on', ['message', 'over', 'starts', 'arrives', 'waited for', 'of'], shown.map(({ message, cause }) => ({
    cells: [String(message), linkName(graph, flight.link[message]!), ...instants(flight.start[message]!, flight.arrive[message]!), causeInWords(cause, executed), cause.message < 0 ? '-' : `message ${cause.message} over ${linkName(graph, flight.link[cause.message]!)}`],
    run: () => store.select({ kind: 'message', message }) })));
  const pairs = waits.pairs();
  const idle = table('Ranks that wait for each other', ['waits', 'for', 'links idle', 'messages'], pairs.slice(0, MOST).map((pair) => ({
    cells: [graph.labels[pair.waiter]!, graph.labels[pair.for]!, seconds(pair.idle), count(pair.messages)],
    run: () => store.select({ kind: 'node', node: pair.waiter }) })));
  store.onChange((s) => {
    made.mark(s.kind === 'message' ? shown.findIndex((one) => one.message === s.message) : -1);
    idle.mark(s.kind === 'node' ? pairs.slice(0, MOST).findIndex((pair) => pair.waiter === s.node) : -1);
  });
  bar.append(element('span', { class: 'space' }), button('Show the chain', 'Show the chain that the time hangs on in all views', () => store.select({ kind: 'chain', messages: chain.map((one) => one.message) })));
  const beside = element('div', { class: 'halves' }, made.root, ...(pairs.length > 0 ? [idle.root] : [element('p', { class: 'soft' }, 'No link stands free while its next message waits for what others send.')]));
  return [element('p', { id: 'waits-words' }, words), ...(chain.length > MOST ? [element('p', { class: 'soft' }, `The last ${MOST} of ${count(chain.length)}.`)] : []), beside];
}
