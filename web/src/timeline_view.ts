// Messages by time: a row a link or a rank; from the whole to one transfer. Where rows are thinner than a pixel or
// messages too many, what is drawn is how long the links of a pixel are busy.
import { heatColor, heatTone, isLight } from './colors';
import { Canvas, button, element, onPointer } from './dom';
import { linkName, lowerBound, type Run } from './model';
import type { Store } from './selection';
import { fitted, instant } from './words';

const AXIS = 22, AXIS_FONT = '11px system-ui, sans-serif';
const LEAST_NAME = 12; // pixels of a bar for a name in it
const MOST_WIDTHS = 10_000;
type Rows = 'link' | 'rank';

// Beside other timelines: a title of its own, the time that the axis ends at, and who hears when it is moved or zoomed
// (the part of the axis at the left, and that of one pixel). Of what is no message over a link: what rows are called,
// and words and colour of each. `labels`: pixels for the names of rows, else as much as the longest needs.
export interface TimelineOptions {
  title?: string; span?: number; onWindow?: (from: number, perPixel: number) => void;
  labels?: number; rowName?: (link: number) => string; text?: (message: number) => string; color?: (message: number) => string;
}

// What the pixels of a window hold: seconds of links that are taken, and those times when they start; and their colours.
interface Density { from: number; perPixel: number; top: number; rowHeight: number; wide: number; high: number; busy: Float32Array; when: Float32Array; picture: ImageData }

export class TimelineView {
  readonly root: HTMLElement;
  time = 0;
  lastDrawMs = 0; // of the latest picture
  private readonly canvas: Canvas;
  private rows: Rows = 'link';
  private rowOf: Int32Array = new Int32Array();
  private names: number[] = []; // by row: the link or node
  private from = 0; // ps at the left
  private perPixel = 1; // ps
  private top = 0; // rows
  private rowHeight = 1;
  private density: Density | null = null; // of the latest picture, where it had one
  private readonly widths = new Map<string, number>(); // of names in bars, in pixels
  private readonly base = document.createElement('canvas');
  private stale = true;
  private span: number; // ps, of the whole axis
  private readonly labels: number; // room for the names of rows

  constructor(private readonly run: Run, private readonly store: Store, private readonly setTime: (time: number) => void, private readonly options: TimelineOptions = {}) {
    this.span = Math.max(1, options.span ?? run.time);
    this.labels = options.labels ?? roomForNames(run, options.rowName);
    const title = options.title ?? 'Timeline';
    this.canvas = new Canvas('timeline', `Timeline of ${options.title === undefined ? '' : `${options.title}: `}${run.flight.count} messages. Left and right choose the message before or after, up and down the row, plus and minus zoom.`,
      () => this.draw());
    const choice = element('select', { 'aria-label': 'Rows of the timeline' }, element('option', { value: 'link' }, 'a row a link'), element('option', { value: 'rank' }, 'a row a sender'));
    choice.addEventListener('change', () => {
      this.rows = choice.value === 'rank' ? 'rank' : 'link';
      this.arrange();
      this.fit();
    });
    const bar = element('div', { class: 'bar' }, element('h2', {}, title), ...(options.rowName ? [] : [choice]), ...(options.title === undefined ? [element('span', { class: 'soft' }, 'colour: time at which a message starts')] : []),
      element('span', { class: 'space' }), element('span', { class: 'together' }, button('+', 'Enlarge the timeline', () => this.zoomBy(1.6)), button('\u2212', 'Shrink the timeline', () => this.zoomBy(1 / 1.6)),
        button('Taller', 'Make rows taller', () => this.taller(1.6)), button('Lower', 'Make rows lower', () => this.taller(1 / 1.6)),
        button('Fit', 'Show the whole timeline', () => this.fit())));
    this.root = element('section', { class: 'wide', 'aria-label': options.title === undefined ? 'Timeline' : `Timeline of ${title}` }, bar, this.canvas.canvas);
    this.arrange();
    let rest = 0; // of whole pixels
    onPointer(this.canvas, (dx, dy) => {
      const pixels = Math.round(dx + rest);
      rest += dx - pixels;
      this.from -= pixels * this.perPixel;
      this.top -= dy / this.rowHeight;
      this.keepInside();
      this.refresh();
      this.tell();
    }, (x, y) => this.click(x, y));
    this.canvas.canvas.addEventListener('wheel', (event) => {
      event.preventDefault();
      const factor = Math.exp(-event.deltaY / 400);
      if (event.shiftKey) this.taller(factor); else this.zoomBy(factor, this.canvas.at(event)[0]);
    }, { passive: false });
    this.canvas.canvas.addEventListener('keydown', (event) => this.key(event));
    store.onChange(() => this.refresh());
  }

  setNow(time: number): void {
    this.time = time;
    this.canvas.redraw();
  }

  // The middle of a message in pixels of the window; what is not in the picture is brought there.
  messageAt(message: number): [number, number] {
    this.reveal(message);
    this.draw();
    const { flight } = this.run;
    const box = this.canvas.canvas.getBoundingClientRect();
    const x = (this.x(flight.start[message]!) + this.x(flight.free[message]!)) / 2;
    return [box.left + 1 + x, box.top + 1 + this.y(this.rowOf[flight.link[message]!]!) + this.rowHeight / 2];
  }

  // Shows another part of the axis, or the whole of another length.
  setWindow(from: number, perPixel: number): void {
    this.from = from * this.span;
    this.perPixel = perPixel * this.span;
    this.refresh();
  }
  setSpan(span: number): void {
    this.span = Math.max(1, span);
    this.density = null;
    this.fit();
  }

  private tell(): void { this.options.onWindow?.(this.from / this.span, this.perPixel / this.span); }
  private get whole(): number { return this.span / Math.max(10, this.canvas.width - this.labels - 8); }
  private get count(): number { return Math.max(1, this.names.length); }
  private x(time: number): number { return this.labels + (time - this.from) / this.perPixel; }
  private y(row: number): number { return AXIS + (row - this.top) * this.rowHeight; }

  private arrange(): void {
    const { graph, flight } = this.run;
    const used = new Set(flight.link);
    this.density = null;
    this.rowOf = new Int32Array(graph.tail.length).fill(-1);
    this.names = [];
    const rowOfNode = new Map<number, number>();
    for (let link = 0; link < graph.tail.length; ++link) {
      if (!used.has(link)) continue;
      if (this.rows === 'link') {
        this.rowOf[link] = this.names.push(link) - 1;
        continue;
      }
      const node = graph.tail[link]!;
      let row = rowOfNode.get(node);
      if (row === undefined) rowOfNode.set(node, row = this.names.push(node) - 1);
      this.rowOf[link] = row;
    }
  }

  private fit(): void {
    this.from = 0;
    this.top = 0;
    this.perPixel = this.whole;
    this.rowHeight = (this.canvas.height - AXIS) / this.count;
    this.refresh();
    this.tell();
  }

  private keepInside(): void {
    const shown = (this.canvas.width - this.labels) * this.perPixel;
    this.from = Math.max(-shown * 0.05, Math.min(this.from, Math.max(0, this.span - shown * 0.5)));
    this.top = Math.max(0, Math.min(this.top, Math.max(0, this.count - (this.canvas.height - AXIS) / this.rowHeight)));
  }

  private zoomBy(factor: number, x = (this.canvas.width + this.labels) / 2): void {
    const at = this.from + (x - this.labels) * this.perPixel;
    this.perPixel = Math.max(this.whole / 1e6, Math.min(this.whole, this.perPixel / factor));
    this.from = at - (x - this.labels) * this.perPixel;
    this.keepInside();
    this.refresh();
    this.tell();
  }

  private taller(factor: number): void {
    const least = (this.canvas.height - AXIS) / this.count;
    this.rowHeight = Math.max(least, Math.min(Math.max(40, least), this.rowHeight * factor));
    this.keepInside();
    this.refresh();
  }

  private reveal(message: number): void {
    const { flight } = this.run;
    const row = this.rowOf[flight.link[message]!]!;
    if (this.rowHeight < 6) this.rowHeight = 6;
    const y = this.y(row);
    if (y < AXIS || y + this.rowHeight > this.canvas.height) this.top = row - (this.canvas.height - AXIS) / this.rowHeight / 2;
    const x = this.x(flight.start[message]!);
    if (x < this.labels || this.x(flight.free[message]!) > this.canvas.width) this.from = flight.start[message]! - 0.1 * (this.canvas.width - this.labels) * this.perPixel;
    this.keepInside();
    this.refresh();
  }

  private refresh(): void {
    this.stale = true;
    this.canvas.redraw();
  }

  private draw(): void {
    const { context, width, height, canvas } = this.canvas;
    if (this.base.width !== canvas.width || this.base.height !== canvas.height) {
      this.base.width = canvas.width;
      this.base.height = canvas.height;
      if (this.perPixel === 1) {
        this.fit();
      } else {
        this.rowHeight = Math.max(this.rowHeight, (height - AXIS) / this.count);
      }
      this.stale = true;
    }
    if (this.stale) {
      this.stale = false;
      const before = performance.now();
      const drawn = this.base.getContext('2d');
      if (drawn === null) return;
      drawn.setTransform(context.getTransform());
      drawn.clearRect(0, 0, width, height);
      this.drawMessages(drawn);
      this.drawChosen(drawn);
      this.drawAxes(drawn);
      this.lastDrawMs = performance.now() - before;
    }
    context.save();
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, canvas.width, canvas.height);
    context.drawImage(this.base, 0, 0);
    context.restore();
    const x = this.x(this.time);
    if (x < this.labels) return;
    context.fillStyle = '#c8102e';
    context.fillRect(x - 0.75, 0, 1.5, height);
  }

  private visible(): [number, number] {
    const { flight } = this.run;
    const to = this.from + (this.canvas.width - this.labels) * this.perPixel;
    return [lowerBound(flight.start, this.from - flight.longest), lowerBound(flight.start, to)];
  }

  private drawMessages(context: CanvasRenderingContext2D): void {
    const { flight } = this.run, time = this.span;
    const [first, last] = this.visible();
    if (this.rowHeight < 2 || last - first > 40000) return this.drawDensity(context);
    const { height } = this.canvas;
    const gap = Math.min(2, this.rowHeight * 0.15);
    for (let i = first; i < last; ++i) {
      const y = this.y(this.rowOf[flight.link[i]!]!);
      if (y > height || y + this.rowHeight < AXIS) continue;
      const x = this.x(flight.start[i]!), end = this.x(flight.free[i]!);
      const wide = Math.max(1, end - x - (end - x > 3 ? 1 : 0));
      const share = time > 0 ? flight.start[i]! / time : 0;
      const fill = this.options.color?.(i);
      context.fillStyle = fill ?? heatColor(share);
      context.fillRect(x, y + gap / 2, wide, this.rowHeight - gap);
    }
    if (this.rowHeight >= 11) this.drawNames(context, first, last);
  }

  // In what is seen of each bar: one that begins left of the window keeps its name, one that the next covers has less room.
  private drawNames(context: CanvasRenderingContext2D, first: number, last: number): void {
    const { flight } = this.run, { height } = this.canvas;
    const free = new Map<number, number>(); // by row: where the next bar begins
    context.font = '10px system-ui, sans-serif';
    context.textAlign = 'left';
    context.textBaseline = 'middle';
    for (let i = last - 1; i >= first; --i) {
      const row = this.rowOf[flight.link[i]!]!, y = this.y(row);
      if (y > height || y + this.rowHeight < AXIS) continue;
      const x = this.x(flight.start[i]!), left = Math.max(x, this.labels) + 4;
      const room = Math.min(this.x(flight.free[i]!), free.get(row) ?? Infinity, this.canvas.width) - left - 4;
      free.set(row, x);
      if (room < LEAST_NAME) continue;
      const name = fitted(this.textOf(i), room, (text) => this.widthOf(context, text));
      const fill = this.options.color?.(i);
      context.fillStyle = (fill === undefined ? flight.start[i]! / this.span > 0.55 : isLight(fill)) ? '#1a1a1a' : '#ffffff';
      if (name !== '') context.fillText(name, left, y + this.rowHeight / 2);
    }
  }

  // In the font of the names in bars, where few texts come many times.
  private widthOf(context: CanvasRenderingContext2D, text: string): number {
    let width = this.widths.get(text);
    if (width === undefined) {
      if (this.widths.size > MOST_WIDTHS) this.widths.clear();
      this.widths.set(text, width = context.measureText(text).width);
    }
    return width;
  }

  private textOf(i: number): string {
    const { options, run } = this;
    if (options.text) return options.text(i);
    return run.timed ? `shard ${run.schedule.transfers?.shard[run.flight.first[i]!] ?? ''}` : `step ${run.flight.step[i]! + 1}`;
  }

  // Per pixel of the screen: the mean start of the messages there, fainter the less of its links is taken. A window that has
  // moved along the axis by whole pixels needs only what came into it.
  private drawDensity(context: CanvasRenderingContext2D): void {
    const wide = Math.max(1, Math.floor(this.canvas.width - this.labels)), high = Math.max(1, Math.floor(this.canvas.height - AXIS));
    const { perPixel, top, rowHeight } = this;
    let density = this.density, begin = 0, end = wide;
    const same = density !== null && density.perPixel === perPixel && density.top === top && density.rowHeight === rowHeight && density.wide === wide && density.high === high;
    const moved = same ? (this.from - density!.from) / perPixel : Infinity, shift = Math.round(moved);
    if (density !== null && Math.abs(moved - shift) < 0.01 && Math.abs(shift) < wide) {
      if (shift > 0) begin = wide - shift; else end = -shift;
      moveColumns(density.busy, wide, high, shift);
      moveColumns(density.when, wide, high, shift);
      moveColumns(new Uint32Array(density.picture.data.buffer), wide, high, shift);
      density.from += shift * perPixel;
    } else {
      density = { from: this.from, perPixel, top, rowHeight, wide, high, busy: new Float32Array(wide * high), when: new Float32Array(wide * high), picture: new ImageData(wide, high) };
    }
    this.density = density;
    this.addMessages(density, begin, end);
    this.paint(density, begin, end);
    const scratch = document.createElement('canvas');
    scratch.width = wide;
    scratch.height = high;
    scratch.getContext('2d')?.putImageData(density.picture, 0, 0);
    context.imageSmoothingEnabled = false;
    context.drawImage(scratch, this.labels, AXIS, wide, high);
  }

  // To the columns from `begin` to before `end`.
  private addMessages(density: Density, begin: number, end: number): void {
    const { flight } = this.run, time = this.span;
    const { from, perPixel, wide, high, busy, when } = density;
    const first = lowerBound(flight.start, from + begin * perPixel - flight.longest), last = lowerBound(flight.start, from + end * perPixel);
    for (let i = first; i < last && begin < end; ++i) {
      const row = this.rowOf[flight.link[i]!]!;
      const y0 = Math.max(0, Math.floor((row - this.top) * this.rowHeight));
      const y1 = Math.min(high - 1, Math.max(y0, Math.ceil((row + 1 - this.top) * this.rowHeight) - 1));
      if (y0 >= high || (row + 1 - this.top) * this.rowHeight < 0) continue;
      const a = (flight.start[i]! - from) / perPixel, b = (flight.free[i]! - from) / perPixel;
      const x0 = Math.max(begin, Math.floor(a)), x1 = Math.min(end - 1, Math.floor(b));
      const share = flight.start[i]! / (time || 1);
      for (let x = x0; x <= x1; ++x) {
        const part = Math.min(x + 1, b) - Math.max(x, a);
        for (let y = y0; y <= y1; ++y) {
          busy[y * wide + x]! += part;
          when[y * wide + x]! += part * share;
        }
      }
    }
  }

  private paint(density: Density, begin: number, end: number): void {
    const { wide, high, busy, when } = density, { data } = density.picture;
    const rowsPerPixel = Math.max(1, 1 / this.rowHeight);
    const links = this.rows === 'link' ? rowsPerPixel : rowsPerPixel * (this.run.graph.tail.length / this.count);
    for (let y = 0; y < high; ++y)
      for (let p = y * wide + begin; p < y * wide + end; ++p) {
        const taken = busy[p]!;
        if (taken <= 0) {
          data[4 * p + 3] = 0;
          continue;
        }
        const [r, g, b] = heatTone(when[p]! / taken);
        data[4 * p] = r;
        data[4 * p + 1] = g;
        data[4 * p + 2] = b;
        data[4 * p + 3] = 60 + 195 * Math.min(1, taken / links);
      }
  }

  private drawChosen(context: CanvasRenderingContext2D): void {
    const s = this.store.selection;
    const { flight, graph } = this.run;
    let chosen: (i: number) => boolean;
    if (s.kind === 'message') chosen = (i) => i === s.message;
    else if (s.kind === 'chain') {
      const chain = new Set(s.messages);
      chosen = (i) => chain.has(i);
      this.drawChain(context, s.messages);
    }
    else if (s.kind === 'link') chosen = (i) => flight.link[i] === s.link;
    else if (s.kind === 'step') chosen = (i) => flight.step[i] === s.step;
    else if (s.kind === 'node') chosen = (i) => graph.tail[flight.link[i]!] === s.node || graph.head[flight.link[i]!] === s.node;
    else if (s.kind === 'shard') {
      const messages = new Set(this.run.transfersOfShard(s.shard).map((t) => this.run.messageOfTransfer(t)));
      chosen = (i) => messages.has(i);
    } else return;
    context.strokeStyle = '#d55e00';
    context.lineWidth = 2;
    const [first, last] = this.visible();
    for (let i = first; i < last; ++i) {
      if (!chosen(i)) continue;
      const x = Math.max(this.labels, this.x(flight.start[i]!));
      context.strokeRect(x, this.y(this.rowOf[flight.link[i]!]!), Math.max(2, this.x(flight.free[i]!) - x), Math.max(2, this.rowHeight));
    }
  }

  // From each message of a chain to the one that waits for it.
  private drawChain(context: CanvasRenderingContext2D, messages: number[]): void {
    const { flight } = this.run;
    context.strokeStyle = '#d55e00';
    context.lineWidth = 1.5;
    context.beginPath();
    messages.forEach((message, i) => {
      const y = this.y(this.rowOf[flight.link[message]!]!) + this.rowHeight / 2;
      if (i > 0) context.lineTo(this.x(flight.start[message]!), y); else context.moveTo(this.x(flight.start[message]!), y);
      context.lineTo(this.x(flight.free[message]!), y);
    });
    context.stroke();
  }

  private drawAxes(context: CanvasRenderingContext2D): void {
    const { width, height } = this.canvas;
    context.clearRect(0, 0, this.labels, height);
    context.clearRect(0, 0, width, AXIS);
    context.font = AXIS_FONT;
    context.textBaseline = 'middle';
    context.fillStyle = '#3b4550';
    context.strokeStyle = '#d5dae0';
    context.lineWidth = 1;
    const step = roundStep(110 * this.perPixel);
    context.textAlign = 'left';
    for (let time = Math.max(0, Math.ceil(this.from / step) * step); this.x(time) < width - 20; time += step) {
      const x = this.x(time);
      context.fillText(time === 0 ? '0' : instant(time, step), x + 3, AXIS / 2);
      context.beginPath();
      context.moveTo(x + 0.5, 2);
      context.lineTo(x + 0.5, AXIS);
      context.stroke();
    }
    context.textAlign = 'right';
    const every = Math.max(1, Math.ceil(13 / this.rowHeight));
    for (let row = Math.max(0, Math.floor(this.top / every) * every); row < this.count && this.y(row) < height; row += every) {
      const y = this.y(row) + (this.rowHeight >= 13 ? this.rowHeight / 2 : Math.min(6, this.rowHeight * every / 2));
      if (y < AXIS + 4 || y > height - 5 || this.names[row] === undefined) continue;
      const name = this.options.rowName ? this.options.rowName(this.names[row]!) : this.rows === 'link' ? linkName(this.run.graph, this.names[row]!) : this.run.graph.labels[this.names[row]!]!;
      context.fillText(fitted(name, this.labels - 8, (text) => context.measureText(text).width), this.labels - 5, y);
    }
  }

  private click(x: number, y: number): void {
    if (y < AXIS) return this.setTime(Math.max(0, Math.min(this.span, this.from + (x - this.labels) * this.perPixel)));
    const message = this.hit(x, y);
    this.store.select(message >= 0 ? { kind: 'message', message } : { kind: 'none' });
  }

  private hit(x: number, y: number): number {
    const { flight } = this.run;
    const row = this.top + (y - AXIS) / this.rowHeight, near = Math.max(0.5, 2 / this.rowHeight);
    const [first, last] = this.visible();
    let best = -1, distance = Infinity;
    for (let i = first; i < last; ++i) {
      const off = Math.abs(this.rowOf[flight.link[i]!]! + 0.5 - row);
      if (off > near || this.x(flight.start[i]!) > x + 2 || this.x(flight.free[i]!) < x - 2) continue;
      if (off < distance) [best, distance] = [i, off];
    }
    return best;
  }

  private key(event: KeyboardEvent): void {
    const s = this.store.selection;
    const { flight } = this.run;
    const move = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const rows = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (flight.count > 0 && (move !== undefined || rows !== undefined)) {
      const now = s.kind === 'message' ? s.message : -1;
      const next = now < 0 ? 0 : move !== undefined ? this.neighbour(now, move, 0) : this.neighbour(now, rows!, rows!);
      if (next >= 0) {
        this.store.select({ kind: 'message', message: next });
        this.reveal(next);
      }
    } else if (event.key === '+' || event.key === '=') this.zoomBy(1.6);
    else if (event.key === '-') this.zoomBy(1 / 1.6);
    else if (event.key === '0') this.fit();
    else if (event.key === 'Escape') this.store.select({ kind: 'none' });
    else return;
    event.preventDefault();
  }

  // The next message one way in the same row, or the one nearest in time in the next row that has one.
  private neighbour(from: number, step: number, rows: number): number {
    const { flight } = this.run;
    const row = this.rowOf[flight.link[from]!]! + rows;
    if (rows === 0) {
      for (let i = from + step; i >= 0 && i < flight.count; i += step) if (this.rowOf[flight.link[i]!] === row) return i;
      return from;
    }
    let best = -1;
    for (let i = 0; i < flight.count; ++i)
      if (this.rowOf[flight.link[i]!] === row && (best < 0 || Math.abs(flight.start[i]! - flight.start[from]!) < Math.abs(flight.start[best]! - flight.start[from]!))) best = i;
    return best < 0 ? from : best;
  }
}

// Pixels that names of rows need, within what leaves room for the rows.
export function roomForNames(run: Run, rowName?: (link: number) => string): number {
  const { graph, flight } = run, least = rowName ? 132 : 92, most = 220;
  const context = document.createElement('canvas').getContext('2d');
  if (context === null) return least;
  context.font = AXIS_FONT;
  let longest = '';
  for (const link of new Set(flight.link)) {
    const name = rowName ? rowName(link) : linkName(graph, link);
    if (name.length > longest.length) longest = name;
  }
  return Math.round(Math.max(least, Math.min(most, context.measureText(longest).width + 12)));
}

// What stood `shift` columns to the right comes to each; what comes in from outside is 0.
export function moveColumns(cells: Float32Array | Uint32Array, wide: number, high: number, shift: number): void {
  if (shift === 0) return;
  for (let y = 0; y < high; ++y) {
    const row = cells.subarray(y * wide, (y + 1) * wide);
    if (shift > 0) row.copyWithin(0, shift); else row.copyWithin(-shift, 0);
    if (shift > 0) row.fill(0, wide - shift); else row.fill(0, 0, -shift);
  }
}

// 1, 2 or 5 times a power of ten, not below `least`.
export function roundStep(least: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, least)));
  return [1, 2, 5, 10].map((times) => times * power).find((step) => step >= least) ?? 10 * power;
}
