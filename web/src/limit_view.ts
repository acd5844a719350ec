// Bound against reached, as a whole and step by step; and the limits of a network by collective.
import type { Bounds, Limit } from './data';
import { button, element } from './dom';
import { linkName, linksOut, type Graph, type Run } from './model';
import type { Store } from './selection';
import { bytes, count, instant, percent, plural, rate, seconds } from './words';

// The certificate in words.
export function cutWords(bounds: Bounds): string {
  const { cut } = bounds;
  if (cut === null) return `The bandwidth limit is no cut: ${bounds.reason}.`;
  const capacity = rational(cut.capacity_out), shards = rational(cut.shards_out);
  return `Bottleneck cut: ${plural(Number(shards.toPrecision(6)), 'shard')} must leave ${plural(cut.count, 'node')} over links of ${rate(capacity)} together (${bounds.reason}).`;
}

function rational(text: string): number {
  const [num, den] = text.split('/');
  return Number(num) / Number(den ?? 1);
}

export function bars(rows: [string, number, string, string][]): HTMLElement {
  const most = Math.max(1, ...rows.map(([, value]) => value));
  const grid = element('div', { class: 'bound-bars' });
  for (const [name, value, text, color] of rows)
    grid.append(element('span', {}, name), element('div', { class: 'track', role: 'img', 'aria-label': `${name}: ${text}` },
      element('div', { class: 'fill', style: `width:${value > 0 ? Math.max(0.5, (100 * value) / most).toFixed(2) : 0}%;background:${color}` })), element('span', {}, text));
  return grid;
}

export function table(label: string, heads: string[], rows: { cells: string[]; run: () => void }[]): { root: HTMLElement; mark: (...rows: number[]) => void } {
  const body = element('tbody');
  const words = heads.map((_, i) => rows.some((row) => row.cells[i]!.length > 24));
  rows.forEach((row) => {
    const line = element('tr', { tabindex: 0 }, ...row.cells.map((cell, i) => element('td', words[i] ? { class: 'words' } : {}, cell)));
    line.addEventListener('click', row.run);
    line.addEventListener('keydown', (event) => {
      if (event.key !== 'Enter' && event.key !== ' ') return;
      event.preventDefault();
      row.run();
    });
    body.append(line);
  });
  const root = element('div', { class: 'scroll' }, element('table', { 'aria-label': label }, element('thead', {}, element('tr', {}, ...heads.map((head, i) => element('th', words[i] ? { scope: 'col', class: 'words' } : { scope: 'col' }, head)))), body));
  return { root, mark: (...chosen) => {
    [...body.children].forEach((line, i) => line.setAttribute('aria-selected', String(chosen.includes(i))));
    scrollTo(root, body.children[chosen[0] ?? -1]);
  } };
}

// Brings a row that was chosen elsewhere into what is seen of its table; the page itself stays where it is.
export function scrollTo(root: HTMLElement, line: Element | undefined): void {
  if (line === undefined) return;
  const box = root.getBoundingClientRect(), row = line.getBoundingClientRect();
  const head = root.querySelector('thead')?.getBoundingClientRect().height ?? 0;
  if (row.top < box.top + head || row.bottom > box.bottom) root.scrollTop += row.top - box.top - Math.max(head, (box.height - row.height) / 2);
}

// Of each step, how long the links out of the bottleneck cut are busy in it; null without a cut.
function useOfCut(run: Run): Map<number, number> | null {
  const cut = linksOut(run.graph, new Set(run.schedule.bounds?.cut?.inside ?? []));
  if (cut.length === 0) return null;
  const links = new Set(cut), { flight } = run, busy = new Map<number, number>();
  for (let i = 0; i < flight.count; ++i) if (links.has(flight.link[i]!)) busy.set(flight.step[i]!, (busy.get(flight.step[i]!) ?? 0) + flight.free[i]! - flight.start[i]!);
  return new Map(run.steps().map((sum) => [sum.step, (busy.get(sum.step) ?? 0) / Math.max(1, (sum.end - sum.start) * links.size)]));
}

export function limitView(run: Run, store: Store): HTMLElement {
  const { schedule } = run;
  const root = element('section', { 'aria-label': 'Bound and time' }, element('div', { class: 'bar' }, element('h2', {}, 'Bound against reached')));
  const rows: [string, number, string, string][] = [];
  if (schedule.bound_ps !== undefined) rows.push(['bound', schedule.bound_ps, seconds(schedule.bound_ps), '#56b4e9']);
  if (schedule.simulation) rows.push(['reached', run.time, seconds(run.time), '#0072b2']);
  root.append(bars(rows));
  if (schedule.simulation && schedule.bound_ps !== undefined)
    root.append(element('p', { class: 'soft' }, `No schedule is faster than the bound for ${bytes(schedule.size_bytes)}; this one reaches ${percent(run.time > 0 ? schedule.bound_ps / run.time : 1)} of it.`));
  const all = run.steps();
  const most = 500;
  if (all.length > 0) {
    const shown = all.slice(0, most);
    const cut = useOfCut(run);
    const made = table('Steps', ['step', 'from', 'lasts', 'messages', 'link use', ...(cut ? ['cut use'] : []), 'busiest link'], shown.map((sum) => ({
      cells: [String(sum.step + 1), instant(sum.start, (sum.end - sum.start) / 10), seconds(sum.end - sum.start), count(sum.messages), percent(sum.use), ...(cut ? [percent(cut.get(sum.step) ?? 0)] : []), `${bytes(sum.busiestBytes)} on ${linkName(run.graph, sum.busiest)}`],
      run: () => store.select({ kind: 'step', step: sum.step }) })));
    store.onChange((s) => {
      const step = s.kind === 'step' ? s.step : s.kind === 'message' ? run.flight.step[s.message] : undefined;
      made.mark(shown.findIndex((sum) => sum.step === step));
    });
    root.append(made.root);
    if (all.length > most) root.append(element('p', { class: 'soft' }, `The first ${most} of ${count(all.length)} steps.`));
  } else if (run.timed && run.flight.count > 0) {
    root.append(element('p', { class: 'soft' }, `A timed schedule: ${plural(run.flight.count, 'message')}, at most ${count(schedule.simulation?.max_in_flight ?? 0)} on their way at once.`));
  }
  return root;
}

// The limits of every collective; choosing one draws its cut.
export function limitsTable(limits: Limit[], graph: Graph, choose: (bounds: Bounds) => void): HTMLElement {
  const made = table('Limits of each collective', ['collective', 'steps', 'latency', 'seconds a GB', 'because'], limits.map((limit, i) => ({
    cells: [limit.collective, String(limit.bounds.steps), seconds(limit.bounds.latency_ps), ((limit.bounds.seconds_per_byte.value ?? 0) * 1e9).toPrecision(4), limit.bounds.reason],
    run: () => {
      made.mark(i);
      choose(limit.bounds);
    } })));
  const first = limits.findIndex((limit) => limit.bounds.cut !== null && limit.bounds.cut.inside.length > 0);
  made.mark(first < 0 ? 0 : first);
  return element('section', { 'aria-label': 'Limits' }, element('div', { class: 'bar' }, element('h2', {}, `Limits of ${graph.name || 'the network'}`)),
    element('p', { class: 'soft' }, 'No schedule is faster. A row chosen draws its cut.'), made.root);
}

export function cutButton(show: (on: boolean) => void): HTMLButtonElement {
  let on = true;
  const made = button('Cut', 'Draw the bottleneck cut in red', () => {
    on = !on;
    made.setAttribute('aria-pressed', String(on));
    show(on);
  });
  made.setAttribute('aria-pressed', 'true');
  return made;
}
