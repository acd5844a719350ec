// What is chosen, in words, with ways on to what belongs to it; and a form to choose by number.
import { isExecuted } from './compare_view';
import { button, element } from './dom';
import { isSwitch, linkName, type Graph, type Run } from './model';
import type { Selection, Store } from './selection';
import { causeInWords, type Waits } from './waits';
import { bytes, count, instants, percent, plural, rate, seconds } from './words';

const MOST = 12;

export class DetailsView {
  readonly root: HTMLElement;
  private readonly out = element('div', { 'aria-live': 'polite', id: 'details' });

  constructor(private readonly graph: Graph, private readonly run: Run | null, private readonly store: Store, private readonly waits: () => Waits | null = () => null) {
    const kind = element('select', { 'aria-label': 'Kind of thing to choose' });
    const kinds = ['node', 'link', ...(run !== null && run.flight.count > 0 ? ['message'] : []), ...(run?.schedule.transfers ? ['shard'] : [])];
    kinds.forEach((name) => kind.append(element('option', { value: name }, name)));
    const number = element('input', { type: 'number', min: 0, value: 0, 'aria-label': 'Number of the thing to choose' });
    const form = element('form', { class: 'bar' }, element('h2', {}, 'Chosen'), element('span', { class: 'space' }), kind, number, element('button', { type: 'submit' }, 'Choose'));
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      this.choose(kind.value, Math.floor(Number(number.value)));
    });
    this.root = element('section', { class: 'details', 'aria-label': 'What is chosen' }, form, this.out);
    store.onChange((selection) => this.show(selection));
    this.show(store.selection);
  }

  private choose(kind: string, at: number): void {
    const most = { node: this.graph.nodes, link: this.graph.tail.length, message: this.run?.flight.count ?? 0, shard: this.run?.schedule.shards ?? 0 }[kind] ?? 0;
    if (!(at >= 0 && at < most)) return this.write([`There is no ${kind} ${at}: they are 0 to ${most - 1}.`], []);
    if (kind === 'node') this.store.select({ kind, node: at });
    if (kind === 'link') this.store.select({ kind, link: at });
    if (kind === 'message') this.store.select({ kind, message: at });
    if (kind === 'shard') this.store.select({ kind, shard: at });
  }

  private write(lines: string[], ways: [string, Selection][]): void {
    this.out.replaceChildren(...lines.map((line) => element('p', {}, line)));
    if (ways.length > 0) this.out.append(element('div', { class: 'links' }, ...ways.map(([text, to]) => button(text, `Choose ${text}`, () => this.store.select(to)))));
  }

  private show(s: Selection): void {
    switch (s.kind) {
      case 'none': return this.write([`Nothing is chosen. A click on ${this.run !== null && this.run.flight.count > 0 ? 'a node, a link, a message or a step' : 'a node or a link'} chooses it in all views.`], []);
      case 'node': return this.node(s.node);
      case 'link': return this.link(s.link);
      case 'message': return this.message(s.message);
      case 'shard': return this.shard(s.shard);
      case 'step': return this.step(s.step);
      case 'chain': return this.chain(s.messages);
      case 'cut': return this.write(['The bottleneck cut.'], []);
    }
  }

  private node(node: number): void {
    const { graph } = this;
    const out: number[] = [], into: number[] = [];
    graph.tail.forEach((tail, link) => {
      if (tail === node) out.push(link);
      if (graph.head[link] === node) into.push(link);
    });
    const sum = (links: number[]): number => links.reduce((total, link) => total + graph.bandwidth[link]!, 0);
    const what = graph.grouped ? 'Group' : isSwitch(graph, node) ? 'Switch' : 'Rank';
    const lines = [`${what} ${graph.labels[node]}${graph.labels[node] === String(node) ? '' : ` (node ${node})`}: ${plural(out.length, 'link')} out (${rate(sum(out))}), ${plural(into.length, 'link')} in (${rate(sum(into))}).`];
    const use = this.run?.schedule.simulation?.use;
    if (use) lines.push(`Sends ${bytes(out.reduce((t, l) => t + use.bytes[l]!, 0))}, receives ${bytes(into.reduce((t, l) => t + use.bytes[l]!, 0))}.`);
    this.write(lines, out.slice(0, MOST).map((link) => [`link ${linkName(graph, link)}`, { kind: 'link', link }]));
  }

  private link(link: number): void {
    const { graph, run } = this;
    const many = graph.grouped ? ` (${plural(graph.links[link]!, 'link')} together)` : '';
    const lines = [`Link ${link}: ${linkName(graph, link)}, ${rate(graph.bandwidth[link]!)}${graph.alpha ? `, alpha ${seconds(graph.alpha[link]!)}` : ''}${many}.`];
    const use = run?.schedule.simulation?.use;
    if (run && use) lines.push(`Busy ${percent(run.time > 0 ? use.busy_ps[link]! / (run.time * graph.links[link]!) : 0)} of the time, carries ${bytes(use.bytes[link]!)}.`);
    const ways: [string, Selection][] = [[`node ${graph.labels[graph.tail[link]!]}`, { kind: 'node', node: graph.tail[link]! }], [`node ${graph.labels[graph.head[link]!]}`, { kind: 'node', node: graph.head[link]! }]];
    for (let i = 0; run && i < run.flight.count && ways.length < MOST; ++i)
      if (run.flight.link[i] === link) ways.push([`message ${i} at ${seconds(run.flight.start[i]!)}`, { kind: 'message', message: i }]);
    this.write(lines, ways);
  }

  private message(message: number): void {
    const run = this.run!;
    const { flight, graph } = run;
    const link = flight.link[message]!;
    const step = run.timed ? '' : `, step ${flight.step[message]! + 1}`;
    const transfers = run.transfersOfMessage(message, MOST + 1);
    const t = run.schedule.transfers, waited = this.waitOf(message);
    const part = (i: number): string => {
      const units = run.schedule.units_per_shard;
      const piece = t!.begin[i] === 0 && t!.end[i] === units ? '' : ` [${t!.begin[i]}, ${t!.end[i]}) of ${units}`;
      return `shard ${t!.shard[i]}${piece}${t!.reduces?.[i] === 1 ? ', reduced' : ''}`;
    };
    const [start, free, arrive] = instants(flight.start[message]!, flight.free[message]!, flight.arrive[message]!);
    this.write([
      `Message ${message} over ${linkName(graph, link)}${step}: ${bytes(flight.bytes[message]!)}.`,
      `Starts at ${start}, lets the link go at ${free}, has arrived at ${arrive}.`,
      ...waited.lines,
      ...(t ? [`Carries ${transfers.slice(0, MOST).map(part).join('; ')}${transfers.length > MOST ? '; and more' : ''}.`] : []),
    ], [[`link ${linkName(graph, link)}`, { kind: 'link', link }], ...waited.ways,
      ...(t ? [...new Set(transfers.slice(0, MOST).map((i) => t.shard[i]!))].map((shard): [string, Selection] => [`shard ${shard}`, { kind: 'shard', shard }]) : [])]);
  }

  private chain(messages: number[]): void {
    const { flight, graph } = this.run!;
    const last = messages.at(-1);
    if (last === undefined) return this.write(['An empty chain.'], []);
    this.write([`A chain of ${plural(messages.length, 'message')} that ends at ${seconds(flight.arrive[last]!)}, each waiting for the one before.`,
      `Its way: ${messages.slice(0, MOST).map((message) => `${linkName(graph, flight.link[message]!)} at ${seconds(flight.start[message]!)}`).join('; ')}${messages.length > MOST ? '; and more' : ''}.`],
    messages.slice(0, MOST).map((message) => [`message ${message}`, { kind: 'message', message }]));
  }

  // What a message waited for, where that has been looked at; and the way on.
  private waitOf(message: number): { lines: string[]; ways: [string, Selection][] } {
    const waits = this.waits(), run = this.run!;
    if (waits === null) return { lines: [], ways: [] };
    const cause = waits.causeOf(message);
    if (cause.message < 0) return { lines: ['Waited for nothing.'], ways: [] };
    const line = `Waited for ${causeInWords(cause, isExecuted(run.schedule))}: message ${cause.message} over ${linkName(run.graph, run.flight.link[cause.message]!)}, until ${seconds(cause.at)}${cause.idle > 0 ? `; its link stood free for ${seconds(cause.idle)}` : ''}.`;
    return { lines: [line], ways: [[`message ${cause.message} that it waited for`, { kind: 'message', message: cause.message }], ['chain behind it', { kind: 'chain', messages: waits.chainTo(message).map((one) => one.message) }]] };
  }

  private shard(shard: number): void {
    const run = this.run!;
    const t = run.schedule.transfers!;
    const all = run.transfersOfShard(shard);
    const way = all.slice(0, MOST).map((i) => {
      const message = run.messageOfTransfer(i);
      return `${linkName(run.graph, t.link[i]!)}${message >= 0 ? ` at ${seconds(run.flight.start[message]!)}` : ''}`;
    });
    this.write([`Shard ${shard}: ${plural(all.length, 'transfer')}.`, `Its way: ${way.join('; ')}${all.length > MOST ? '; and more' : ''}.`, 'Green rings: who holds it at the time of the clock.'],
      all.slice(0, MOST).map((i) => run.messageOfTransfer(i)).filter((m) => m >= 0).map((message) => [`message ${message}`, { kind: 'message', message }]));
  }

  private step(step: number): void {
    const run = this.run!;
    const sum = run.steps().find((one) => one.step === step);
    if (sum === undefined) return this.write([`Step ${step + 1} sends nothing.`], []);
    this.write([`Step ${step + 1}: ${plural(sum.messages, 'message')}, ${bytes(sum.bytes)} from ${instants(sum.start, sum.end).join(' to ')}; links busy ${percent(sum.use)} of it.`,
      `Most is carried by ${linkName(run.graph, sum.busiest)}: ${bytes(sum.busiestBytes)}. ${count(run.schedule.steps)} steps in all.`], [[`link ${linkName(run.graph, sum.busiest)}`, { kind: 'link', link: sum.busiest }]]);
  }
}
