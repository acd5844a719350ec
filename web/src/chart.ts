// Charts of lines or points, as SVG: axes with units, direct labels that do not hide each other, no legend.
import { element } from './dom';

export interface Axis { title: string; log: boolean; ticks: (low: number, high: number) => number[]; format: (value: number) => string }
export interface Point { x: number; y: number; text: string } // text: shown by pointing at it
export interface Series { name: string; color: string; points: Point[]; line?: boolean; dash?: string; markers?: boolean; quiet?: boolean } // quiet: not to be chosen
export interface Mark { x: number; text: string } // an upright line
export interface ChartOptions { label: string; x: Axis; y: Axis; series: Series[]; marks?: Mark[]; notes?: Point[]; chosen?: string | null; choose?: (name: string) => void; labels?: 'right' | 'beside' }

const WIDTH = 1180, HEIGHT = 460, LEFT = 76, TOP = 26, BOTTOM = 48;
const NS = 'http://www.w3.org/2000/svg';

export function svg<K extends keyof SVGElementTagNameMap>(tag: K, attributes: Record<string, string | number>, ...children: (Node | string)[]): SVGElementTagNameMap[K] {
  const made = document.createElementNS(NS, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value));
  made.append(...children);
  return made;
}

// Powers of ten, with 2 and 5 between where few fit.
export function decades(low: number, high: number): number[] {
  const all: number[] = [];
  const wide = Math.log10(high / low);
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); ++power)
    for (const times of wide < 3 ? [1, 2, 5] : [1]) all.push(times * 10 ** power);
  return all.filter((value) => value >= low * 0.999 && value <= high * 1.001);
}

// Powers of two, every so many that about ten fit.
export function powersOfTwo(low: number, high: number): number[] {
  const first = Math.ceil(Math.log2(low) - 1e-9), last = Math.floor(Math.log2(high) + 1e-9);
  const every = Math.max(1, Math.ceil((last - first) / 10));
  return Array.from({ length: Math.max(0, Math.floor((last - first) / every) + 1) }, (_, i) => 2 ** (first + i * every));
}

export function round(low: number, high: number): number[] {
  const span = high - low || 1;
  const power = 10 ** Math.floor(Math.log10(span / 6));
  const step = [1, 2, 5, 10].map((times) => times * power).find((one) => span / one <= 8) ?? 10 * power;
  const all: number[] = [];
  for (let value = Math.ceil(low / step - 1e-9) * step; value <= high + step * 1e-9; value += step) all.push(Number(value.toPrecision(12)));
  return all;
}

export const whole = (low: number, high: number): number[] => [...new Set(round(low, high).map(Math.round))].filter((value) => value >= low && value <= high);

// Heights at least `gap` apart, as near to those wanted as the room from `low` to `high` allows; in the given order.
export function spreadOut(wanted: number[], gap: number, low: number, high: number): number[] {
  const order = wanted.map((_, i) => i).sort((a, b) => wanted[a]! - wanted[b]! || a - b);
  const tight = Math.min(gap, (high - low) / Math.max(1, wanted.length - 1));
  const out = wanted.slice();
  let least = low;
  for (const i of order) {
    out[i] = Math.max(wanted[i]!, least);
    least = out[i]! + tight;
  }
  let most = high;
  for (const i of order.reverse()) {
    out[i] = Math.min(out[i]!, most);
    most = out[i]! - tight;
  }
  return out;
}

interface Scale { (value: number): number; low: number; high: number }

function scale(axis: Axis, values: number[], from: number, to: number): Scale {
  const fine = values.filter((value) => Number.isFinite(value) && (!axis.log || value > 0));
  let low = Math.min(...fine), high = Math.max(...fine);
  if (fine.length === 0) [low, high] = [1, 2];
  if (axis.log) {
    if (high / low < 1.5) [low, high] = [low / 1.5, high * 1.5];
  } else {
    const room = (high - low) * 0.06 || Math.abs(high) * 0.1 || 1;
    [low, high] = [Math.max(low >= 0 ? 0 : -Infinity, low - room), high + room];
  }
  const f = axis.log ? Math.log : (value: number): number => value;
  return Object.assign((value: number) => from + ((f(value) - f(low)) / (f(high) - f(low))) * (to - from), { low, high });
}

// Upright labels of marks where they would hide each other are left out.
function drawMarks(marks: Mark[], x: Scale, height: number): SVGElement[] {
  let free = -Infinity;
  return marks.flatMap((mark) => {
    const at = x(mark.x);
    const line = svg('line', { x1: at, x2: at, y1: TOP, y2: height - BOTTOM, stroke: '#56616e', 'stroke-dasharray': '3 3' });
    if (at < free) return [line];
    free = at + 6.2 * mark.text.length + 12;
    return [line, svg('text', { x: at + 4, y: TOP - 9, class: 'soft-text' }, mark.text)];
  });
}

function drawAxes(options: ChartOptions, x: Scale, y: Scale, right: number, height: number): SVGElement[] {
  const out: SVGElement[] = [];
  for (const value of options.x.ticks(x.low, x.high))
    out.push(svg('line', { x1: x(value), x2: x(value), y1: TOP, y2: height - BOTTOM, class: 'grid' }), svg('text', { x: x(value), y: height - BOTTOM + 17, 'text-anchor': 'middle' }, options.x.format(value)));
  for (const value of options.y.ticks(y.low, y.high))
    out.push(svg('line', { x1: LEFT, x2: right, y1: y(value), y2: y(value), class: 'grid' }), svg('text', { x: LEFT - 7, y: y(value) + 4, 'text-anchor': 'end' }, options.y.format(value)));
  const middle = (TOP + height - BOTTOM) / 2;
  out.push(svg('text', { x: (LEFT + right) / 2, y: height - 9, 'text-anchor': 'middle', class: 'axis-title' }, options.x.title),
    svg('text', { x: 15, y: middle, 'text-anchor': 'middle', transform: `rotate(-90 15 ${middle})`, class: 'axis-title' }, options.y.title));
  return out;
}

const SHAPES = 4;
function marker(shape: number, x: number, y: number, color: string, text: string): SVGElement {
  const title = svg('title', {}, text);
  const common = { fill: color, stroke: '#ffffff', 'stroke-width': 0.8 };
  switch (shape % SHAPES) {
    case 0: return svg('circle', { cx: x, cy: y, r: 4, ...common }, title);
    case 1: return svg('rect', { x: x - 3.6, y: y - 3.6, width: 7.2, height: 7.2, ...common }, title);
    case 2: return svg('path', { d: `M${x} ${y - 5} L${x + 4.6} ${y + 3.6} L${x - 4.6} ${y + 3.6} Z`, ...common }, title);
    default: return svg('path', { d: `M${x} ${y - 5} L${x + 5} ${y} L${x} ${y + 5} L${x - 5} ${y} Z`, ...common }, title);
  }
}

function chooses(made: SVGElement, one: Series, options: ChartOptions): void {
  const { choose } = options;
  if (choose === undefined || one.quiet) return;
  made.setAttribute('tabindex', '0');
  made.setAttribute('role', 'button');
  made.setAttribute('aria-label', one.name);
  made.setAttribute('class', 'choosable');
  made.addEventListener('click', () => choose(one.name));
  made.addEventListener('keydown', (event) => { if (event.key === 'Enter' || event.key === ' ') { event.preventDefault(); choose(one.name); } });
}

function drawLabels(options: ChartOptions, x: Scale, y: Scale, right: number, height: number, taken: Box[]): SVGElement[] {
  const shown = options.series.filter((one) => one.points.length > 0 && one.name !== '');
  const ends = shown.map((one) => one.points.at(-1)!);
  const gap = 15;
  if (options.labels === 'beside') return besides(shown, x, y, taken);
  const heights = spreadOut(ends.map((end) => y(end.y)), gap, TOP + 4, height - BOTTOM);
  return shown.flatMap((one, i) => {
    const faint = options.chosen != null && options.chosen !== one.name && !one.quiet;
    const [endX, endY] = [x(ends[i]!.x), y(ends[i]!.y)];
    return [svg('path', { d: `M${endX + 5} ${endY} L${right + 8} ${heights[i]!}`, stroke: one.color, fill: 'none', 'stroke-width': 0.8, opacity: faint ? 0.2 : 0.7 }),
      svg('text', { x: right + 12, y: heights[i]! + 4, fill: one.color, class: 'direct', opacity: faint ? 0.3 : 1 }, one.name)];
  });
}

type Box = [left: number, top: number, right: number, bottom: number];
const meet = (a: Box, b: Box): boolean => a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3];

// What stands beside lines, where nothing else stands; where that is nowhere, at the first place that is tried.
function drawNotes(notes: { x: number; y: number; text: string }[], x: Scale, y: Scale, right: number, taken: Box[]): SVGElement[] {
  return notes.map((note) => {
    const left = x(note.x) > (LEFT + right) / 2, [atX, atY] = [x(note.x) + (left ? -4 : 6), y(note.y)], wide = 6.6 * note.text.length;
    const box = (dy: number): Box => (left ? [atX - wide, atY + dy - 11, atX, atY + dy + 3] : [atX, atY + dy - 11, atX + wide, atY + dy + 3]);
    const tries = [left ? 15 : -6, left ? -6 : 15, 31, -24, 47, -42], dy = tries.find((one) => !taken.some((other) => meet(box(one), other))) ?? tries[0]!;
    taken.push(box(dy));
    return svg('text', { x: atX, y: atY + dy, 'text-anchor': left ? 'end' : 'start' }, note.text);
  });
}

// Names right above points of their own, where none is in the way; adds to what is taken.
function besides(shown: Series[], x: Scale, y: Scale, taken: Box[]): SVGElement[] {
  taken.push(...shown.flatMap((one) => one.points.map((p): Box => [x(p.x) - 6, y(p.y) - 6, x(p.x) + 6, y(p.y) + 6])));
  return shown.flatMap((one) => {
    if (one.quiet) return [];
    const point = one.points[0]!;
    const text = one.name.length > 46 ? `${one.name.slice(0, 44)}\u2026` : one.name;
    const wide = 6.6 * text.length + 4;
    for (const [dx, dy] of [[9, -9], [9, 16], [-wide - 9, -9], [-wide - 9, 16], [9, -26], [9, 34]] as const) {
      const box: Box = [x(point.x) + dx, y(point.y) + dy - 11, x(point.x) + dx + wide, y(point.y) + dy + 3];
      if (box[0] < LEFT || box[2] > WIDTH - 6 || taken.some((other) => meet(box, other))) continue;
      taken.push(box);
      return [svg('text', { x: box[0], y: y(point.y) + dy, fill: one.color, class: 'direct' }, text)];
    }
    return [];
  });
}

export function chart(options: ChartOptions): HTMLElement {
  const longest = options.labels === 'beside' ? 4 : Math.max(4, ...options.series.map((one) => one.name.length));
  const right = WIDTH - Math.min(260, 24 + 7.4 * longest), height = HEIGHT;
  const points = options.series.flatMap((one) => one.points);
  const x = scale(options.x, points.map((point) => point.x), LEFT, right), y = scale(options.y, points.map((point) => point.y), height - BOTTOM, TOP);
  const root = svg('svg', { viewBox: `0 0 ${WIDTH} ${height}`, class: 'chart', role: 'group', 'aria-label': options.label });
  root.append(...drawAxes(options, x, y, right, height), ...drawMarks(options.marks ?? [], x, height));
  options.series.forEach((one, shape) => {
    const faint = options.chosen != null && options.chosen !== one.name && !one.quiet && one.line !== false;
    const group = svg('g', { opacity: faint ? 0.25 : 1 });
    chooses(group, one, options);
    const way = one.points.map((point, i) => `${i === 0 ? 'M' : 'L'}${x(point.x).toFixed(1)} ${y(point.y).toFixed(1)}`).join(' ');
    if (one.line !== false && one.points.length > 1) {
      group.append(svg('path', { d: way, fill: 'none', stroke: one.color, 'stroke-width': options.chosen === one.name ? 3.4 : 2, ...(one.dash ? { 'stroke-dasharray': one.dash } : {}) }));
      if (options.choose && !one.quiet) group.append(svg('path', { d: way, fill: 'none', stroke: 'transparent', 'stroke-width': 12 }));
    }
    if (one.markers !== false) group.append(...one.points.map((point) => marker(shape, x(point.x), y(point.y), one.color, point.text)));
    if (options.chosen === one.name && one.line === false) group.append(...one.points.map((point) => svg('circle', { cx: x(point.x), cy: y(point.y), r: 9, fill: 'none', stroke: '#e69f00', 'stroke-width': 3 })));
    root.append(group);
  });
  const taken: Box[] = [];
  const labels = drawLabels(options, x, y, right, height, taken);
  root.append(...drawNotes(options.notes ?? [], x, y, right, taken), ...labels);
  return element('div', { class: 'chart-box' }, root);
}
