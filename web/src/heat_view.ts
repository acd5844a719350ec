// Use of links as a matrix: from the row's node to the column's; how much of the time its busiest link is taken.
import { heatColor, heatTone } from './colors';
import { Canvas, element, onPointer } from './dom';
import type { Run } from './model';
import type { Store } from './selection';
import { percent, shortNames } from './words';

const EDGE = 56, LETTERS = 8; // room for names at the left, and how long they are

export class HeatView {
  readonly root: HTMLElement;
  private readonly canvas: Canvas;
  private readonly cells: number; // rows and columns of the matrix
  private readonly value: Float64Array; // by cell; -1: no link
  private readonly linkOf: Int32Array;
  private readonly names: string[]; // of nodes, short

  constructor(private readonly run: Run, private readonly store: Store) {
    const { graph, schedule, time } = run;
    this.cells = Math.min(graph.nodes, 512);
    this.names = shortNames(graph.labels, LETTERS);
    this.value = new Float64Array(this.cells * this.cells).fill(-1);
    this.linkOf = new Int32Array(this.cells * this.cells).fill(-1);
    const busy = schedule.simulation?.use.busy_ps ?? [];
    let most = 0;
    graph.tail.forEach((tail, link) => {
      const cell = this.cell(tail) * this.cells + this.cell(graph.head[link]!);
      const share = time > 0 ? (busy[link] ?? 0) / (time * graph.links[link]!) : 0;
      most = Math.max(most, share);
      if (share > this.value[cell]!) {
        this.value[cell] = share;
        this.linkOf[cell] = link;
      }
    });
    this.canvas = new Canvas('heat', `Heat map of link use: ${graph.tail.length} links, the busiest ${percent(most)} of the time. Arrow keys choose the link before or after. The table of links says the same in words.`, () => this.draw());
    const merged = graph.nodes > this.cells ? `; a cell is ${Math.ceil(graph.nodes / this.cells)} nodes each way` : '';
    this.root = element('section', { 'aria-label': 'Heat map of link use' },
      element('div', { class: 'bar' }, element('h2', {}, 'Use of links'), element('span', { class: 'soft' }, `row sends to column${merged}`)), this.canvas.canvas);
    onPointer(this.canvas, () => undefined, (x, y) => this.click(x, y));
    this.canvas.canvas.addEventListener('keydown', (event) => this.key(event));
    store.onChange(() => this.canvas.redraw());
  }

  // The middle of a link's cell in pixels of the window.
  linkAt(link: number): [number, number] {
    const { graph } = this.run;
    const [left, top, size] = this.frame();
    const box = this.canvas.canvas.getBoundingClientRect();
    return [box.left + 1 + left + (this.cell(graph.head[link]!) + 0.5) * size, box.top + 1 + top + (this.cell(graph.tail[link]!) + 0.5) * size];
  }

  private cell(node: number): number { return Math.floor((node * this.cells) / this.run.graph.nodes); }

  private frame(): [number, number, number] {
    const side = Math.max(10, Math.min(this.canvas.height - 24, this.canvas.width - EDGE - 70));
    return [EDGE, 20, side / this.cells];
  }

  private draw(): void {
    const { context, width, height } = this.canvas;
    const [left, top, size] = this.frame();
    context.clearRect(0, 0, width, height);
    const picture = new ImageData(this.cells, this.cells);
    this.value.forEach((share, i) => {
      const [r, g, b] = share < 0 ? [240, 242, 245] : heatTone(share);
      picture.data.set([r!, g!, b!, 255], 4 * i);
    });
    const scratch = document.createElement('canvas');
    [scratch.width, scratch.height] = [this.cells, this.cells];
    scratch.getContext('2d')?.putImageData(picture, 0, 0);
    context.imageSmoothingEnabled = false;
    context.drawImage(scratch, left, top, size * this.cells, size * this.cells);
    this.drawLabels(context, left, top, size);
    this.drawScale(context, left + size * this.cells + 14, top, size * this.cells);
    const s = this.store.selection;
    const links = s.kind === 'link' ? [s.link] : s.kind === 'message' ? [this.run.flight.link[s.message]!] : [];
    context.strokeStyle = '#d55e00';
    context.lineWidth = 2.5;
    for (const link of links)
      context.strokeRect(left + this.cell(this.run.graph.head[link]!) * size - 1, top + this.cell(this.run.graph.tail[link]!) * size - 1, Math.max(4, size) + 2, Math.max(4, size) + 2);
    if (s.kind === 'node') {
      context.strokeRect(left, top + this.cell(s.node) * size, size * this.cells, Math.max(3, size));
      context.strokeRect(left + this.cell(s.node) * size, top, Math.max(3, size), size * this.cells);
    }
  }

  private drawLabels(context: CanvasRenderingContext2D, left: number, top: number, size: number): void {
    const { graph } = this.run;
    context.font = '10px system-ui, sans-serif';
    context.fillStyle = '#3b4550';
    context.textBaseline = 'middle';
    const longest = this.names.reduce((most, label) => Math.max(most, label.length), 0);
    const every = Math.max(1, Math.ceil(Math.max(14, 6 * longest + 4) / size));
    for (let cell = 0; cell < this.cells; cell += every) {
      const short = this.names[Math.ceil((cell * graph.nodes) / this.cells)] ?? '';
      context.textAlign = 'right';
      context.fillText(short, left - 4, top + (cell + 0.5) * size);
      context.textAlign = 'center';
      context.fillText(short, left + (cell + 0.5) * size, top - 9);
    }
  }

  private drawScale(context: CanvasRenderingContext2D, x: number, top: number, height: number): void {
    for (let i = 0; i < 40; ++i) {
      context.fillStyle = heatColor(1 - i / 39);
      context.fillRect(x, top + (i * height) / 40, 12, height / 40 + 0.6);
    }
    context.fillStyle = '#3b4550';
    context.textAlign = 'left';
    for (const share of [0, 0.5, 1]) context.fillText(`${share * 100} %`, x + 16, Math.min(top + height - 5, Math.max(top + 5, top + (1 - share) * height)));
  }

  private key(event: KeyboardEvent): void {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    const s = this.store.selection, links = this.run.graph.tail.length;
    if (step !== undefined) this.store.select({ kind: 'link', link: s.kind === 'link' ? (s.link + step + links) % links : 0 });
    else if (event.key === 'Escape') this.store.select({ kind: 'none' });
    else return;
    event.preventDefault();
  }

  private click(x: number, y: number): void {
    const [left, top, size] = this.frame();
    const column = Math.floor((x - left) / size), row = Math.floor((y - top) / size);
    const inside = column >= 0 && row >= 0 && column < this.cells && row < this.cells;
    const link = inside ? this.linkOf[row * this.cells + column]! : -1;
    this.store.select(link >= 0 ? { kind: 'link', link } : { kind: 'none' });
  }
}
