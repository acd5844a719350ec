// All-to-all as a flow: its rate between two proven limits, what each link carries, and the lengths that prove that
// nothing is faster.
import type { Flow } from './data';
import { element } from './dom';
import { bars, table } from './limit_view';
import { linkName, type Graph } from './model';
import type { NetworkView } from './network_view';
import type { Store } from './selection';
import { count, percent, rate } from './words';

export const rateOf = (flow: Flow): number => (flow.f.value ?? 0) * flow.min_bandwidth;
const digits = (value: number | null): string => String(Number((value ?? NaN).toPrecision(6)));
const MOST = 300;

export const loadShares = (flow: Flow, graph: Graph): number[] => flow.load.map((load, link) => load / graph.bandwidth[link]!);

// By length over the largest; empty where the network is drawn as groups.
export function lengthShares(flow: Flow): number[] {
  const most = flow.length.reduce((a, b) => Math.max(a, b), 0);
  return flow.length.map((length) => (most > 0 ? length / most : 0));
}

export function certificate(flow: Flow, graph: Graph): string {
  const full = loadShares(flow, graph).filter((share) => share > 0.9999).length;
  const reached = `Reached: ${count(full)} of ${count(graph.tail.length)} links ${graph.grouped ? 'between groups ' : ''}are full at the rate ${digits(flow.f.value)}, none more than full.`;
  const bound = `Nothing is faster than ${digits(flow.f_upper.value)}: every byte from s to d uses up at least the distance from s to d of the network's bandwidth, where links have the lengths of the certificate; any faster, and all pairs together would use up more than there is.`;
  return `${reached} ${bound} ${flow.proven ? 'The two are equal: the optimum is proven.' : ''}`;
}

// The figures, the links by load, and what colours the network.
export function flowView(flow: Flow, graph: Graph, network: NetworkView, store: Store): { side: HTMLElement; links: HTMLElement } {
  const pair = rateOf(flow), most = (flow.f_upper.value ?? 0) * flow.min_bandwidth;
  const shares = loadShares(flow, graph), lengths = lengthShares(flow);
  network.setShares(shares);
  const choice = element('select', { 'aria-label': 'What colours the links' }, element('option', { value: 'load' }, 'load of each link'), ...(lengths.length > 0 ? [element('option', { value: 'length' }, 'length in the certificate')] : []));
  choice.addEventListener('change', () => network.setShares(choice.value === 'load' ? shares : lengths));
  network.root.querySelector('.bar .space')?.after(choice);
  const each = flow.demand ? 'at the mean demand' : 'between each pair at once';
  const side = element('section', { 'aria-label': 'Rate of the flow' }, element('div', { class: 'bar' }, element('h2', {}, 'Rate between two limits')),
    bars([['reached', pair, rate(pair), '#0072b2'], ['at most', most, rate(most), '#8a939e']]),
    element('p', {}, `f = ${digits(flow.f.value)} to ${digits(flow.f_upper.value)} of the smallest link (${rate(flow.min_bandwidth)}), ${rate(pair)} ${each}.`),
    ...(flow.demand ? [] : [element('p', {}, `${rate(pair * (graph.ranksOfNetwork - 1))} from each rank to all others together.`)]),
    element('p', {}, certificate(flow, graph)));
  const order = graph.tail.map((_, link) => link).sort((a, b) => shares[b]! - shares[a]! || a - b).slice(0, MOST);
  const made = table('Links by load', ['link', 'load', 'of its bandwidth', 'bandwidth', ...(lengths.length > 0 ? ['length'] : [])], order.map((link) => ({
    cells: [linkName(graph, link), rate(flow.load[link]!), percent(shares[link]!), rate(graph.bandwidth[link]!), ...(lengths.length > 0 ? [percent(lengths[link]!)] : [])], run: () => store.select({ kind: 'link', link }) })));
  store.onChange((s) => made.mark(s.kind === 'link' ? order.indexOf(s.link) : -1));
  const links = element('section', { class: 'wide', 'aria-label': 'Links by load' }, element('div', { class: 'bar' }, element('h2', {}, 'Links by load'),
    element('span', { class: 'soft' }, `${graph.tail.length > MOST ? `the first ${MOST} of ${count(graph.tail.length)}; ` : ''}lengths as parts of the largest`)), made.root);
  return { side, links };
}
