// The network: nodes and links, the bottleneck cut in red, and messages on their way at the time of the clock.
import { Canvas, button, element, onPointer } from './dom';
import { layOut, type Layout } from './layout';
import { isSwitch, linksOut, type Graph, type Run } from './model';
import type { Selection, Store } from './selection';
import { heatColor } from './colors';

const CUT = '#c8102e', CHOSEN = '#e69f00', FLIGHT = '#0072b2', HOLDS = '#009e73', LINK = '#aab2bd';

export class NetworkView {
  readonly root: HTMLElement;
  readonly layout: Layout;
  time = 0;
  private readonly canvas: Canvas;
  private readonly base = document.createElement('canvas'); // what does not change with time
  private baseKey = '';
  private zoom = 1;
  private panX = 0;
  private panY = 0;
  private paths: { straight: boolean; x0: number; y0: number; cx: number; cy: number; x1: number; y1: number }[] = [];
  private readonly turn: Float64Array; // how far a link bends aside, so that none hides another
  private cutInside: ReadonlySet<number> = new Set();
  private cutLinks: ReadonlySet<number> = new Set();
  private arrivals: Map<number, number> | null = null; // of the chosen shard, by node
  private readonly inRow: number; // nodes beside each other, at most
  private readonly rowOf: Map<number, number>; // how many nodes are at a height
  private showUse = false;
  private shares: number[] | null = null;
  private readonly legend = element('span', { class: 'soft legend', hidden: true, 'aria-label': 'Colours of links: from dark for 0 to light for 100 %' });
  private readonly use = button('Link use', 'Colour the links by how long they are busy', () => undefined);

  constructor(private readonly graph: Graph, private readonly run: Run | null, private readonly store: Store, private readonly title = 'Network') {
    this.layout = layOut(graph);
    const { x, y, kind } = this.layout;
    this.inRow = isWide(this.layout) ? mostInRow(y) : Math.max(Math.sqrt(graph.nodes), kind === 'grid' && (graph.grid?.dims.length ?? 0) <= 2 ? Math.max(mostInRow(x), mostInRow(y)) : 0);
    this.rowOf = countRows(y);
    this.turn = bends(graph);
    this.canvas = new Canvas('network', this.label(), () => this.draw());
    const use = this.use;
    use.addEventListener('click', () => this.setUse(!this.showUse));
    use.setAttribute('aria-pressed', 'false');
    const bar = element('div', { class: 'bar' }, element('h2', {}, title), ...(title === 'Network' ? [element('span', { class: 'soft' }, this.words())] : []), element('span', { class: 'space' }),
      ...(run !== null && run.schedule.simulation !== undefined ? [use] : []),
      element('span', { class: 'together' }, button('+', 'Enlarge the network', () => this.zoomBy(1.4)), button('\u2212', 'Shrink the network', () => this.zoomBy(1 / 1.4)),
        button('Fit', 'Show the whole network', () => this.fit())));
    this.legend.append('0 ', element('span', { class: 'ramp', style: `background:linear-gradient(to right,${[0, 0.25, 0.5, 0.75, 1].map(heatColor).join(',')})` }), ' 100 %');
    bar.insertBefore(this.legend, bar.querySelector('.space'));
    this.root = element('section', { 'aria-label': title === 'Network' ? title : `Network of ${title}` }, bar, this.canvas.canvas);
    onPointer(this.canvas, (dx, dy) => {
      this.panX += dx;
      this.panY += dy;
      this.canvas.redraw();
    }, (x, y) => this.click(x, y));
    this.canvas.canvas.addEventListener('wheel', (event) => {
      event.preventDefault();
      this.zoomBy(Math.exp(-event.deltaY / 400), ...this.canvas.at(event));
    }, { passive: false });
    this.canvas.canvas.addEventListener('keydown', (event) => this.key(event));
    store.onChange(() => this.chosen());
  }

  setUse(on: boolean): void {
    this.showUse = on;
    this.use.setAttribute('aria-pressed', String(on));
    this.legend.hidden = !on && this.shares === null;
    this.canvas.redraw();
  }

  // Colours links by numbers from 0 to 1; null: no more.
  setShares(shares: number[] | null): void {
    this.shares = shares;
    this.legend.hidden = shares === null && !this.showUse;
    this.baseKey = '';
    this.canvas.redraw();
  }

  setCut(inside: number[]): void {
    this.cutInside = new Set(inside);
    this.cutLinks = new Set(inside.length > 0 ? linksOut(this.graph, this.cutInside) : []);
    this.baseKey = '';
    this.canvas.redraw();
  }

  get linksOfCut(): ReadonlySet<number> { return this.cutLinks; }

  setTime(time: number): void {
    this.time = time;
    this.canvas.redraw();
  }

  // Where a node and the middle of a link are drawn, in pixels of the window.
  nodeAt(node: number): [number, number] { return this.onScreen(this.place(node)); }
  linkAt(link: number): [number, number] {
    this.measure();
    const p = this.paths[link]!;
    return this.onScreen([(p.x0 + 2 * p.cx + p.x1) / 4, (p.y0 + 2 * p.cy + p.y1) / 4]);
  }

  private words(): string {
    const kinds = { point: 'as one node', grid: 'as a grid', ring: 'as a ring', layers: 'with ranks below, switches above', boxes: 'as boxes, rails above', force: 'by forces' };
    const bent = this.layout.kind === 'grid' && this.graph.grid?.wraps ? ', links around it as bows' : '';
    return this.graph.grouped ? `too large to be drawn node by node: ${this.graph.nodes} groups, ${kinds[this.layout.kind]}` : `drawn ${kinds[this.layout.kind]}${bent}`;
  }

  private label(): string {
    const { graph } = this;
    return `Network ${this.title === 'Network' ? '' : `of ${this.title}, `}${graph.name}: ${graph.nodes} nodes, ${graph.tail.length} links. Arrow keys choose a node, plus and minus zoom.`;
  }

  private onScreen([x, y]: readonly [number, number]): [number, number] {
    const box = this.canvas.canvas.getBoundingClientRect();
    return [box.left + 1 + x, box.top + 1 + y];
  }

  private size(): { radius: number; side: number; left: number; top: number } {
    const { width, height } = this.canvas;
    const wide = isWide(this.layout);
    const margin = 34;
    const side = Math.max(20, Math.min(width, height) - 2 * margin);
    const radius = Math.max(1.2, Math.min(13, (0.36 * (wide ? width : side) * this.zoom) / Math.max(2, this.inRow)));
    return { radius, side, left: (width - side) / 2, top: (height - side) / 2 };
  }

  private place(node: number): [number, number] {
    const { width, height } = this.canvas;
    const { side, left, top } = this.size();
    const wide = isWide(this.layout);
    const x = wide ? 20 + this.layout.x[node]! * (width - 40) : left + this.layout.x[node]! * side;
    const y = top + this.layout.y[node]! * side;
    return [(x - width / 2) * this.zoom + width / 2 + this.panX, (y - height / 2) * this.zoom + height / 2 + this.panY];
  }

  private measure(): void {
    const { graph } = this;
    const { radius } = this.size();
    const points = graph.labels.map((_, node) => this.place(node));
    const between = (this.size().side * this.zoom) / Math.max(1, this.inRow - 1); // nodes of a grid
    this.paths = graph.tail.map((tail, link) => {
      const [ax, ay] = points[tail]!, [bx, by] = points[graph.head[link]!]!;
      const dx = bx - ax, dy = by - ay, length = Math.hypot(dx, dy) || 1;
      const nx = -dy / length, ny = dx / length;
      const turn = this.turn[link]!;
      // Both ways of a cable run beside each other; what goes around a torus bends outwards, but not over the next row.
      const aside = Math.min(4, radius * 0.3);
      const bow = turn * Math.max(Math.min(5, 0.62 * between), Math.min(length * 0.09, 0.62 * between));
      return { straight: bow === 0, x0: ax + nx * aside, y0: ay + ny * aside, cx: (ax + bx) / 2 + nx * (aside + bow), cy: (ay + by) / 2 + ny * (aside + bow), x1: bx + nx * aside, y1: by + ny * aside };
    });
  }

  private draw(): void {
    const { context, width, height, canvas } = this.canvas;
    const key = [width, height, this.zoom, this.panX, this.panY, this.showUse, JSON.stringify(this.store.selection), this.graph.nodes].join();
    if (key !== this.baseKey) {
      this.baseKey = key;
      if (this.base.width !== canvas.width || this.base.height !== canvas.height) { // which takes new memory
        this.base.width = canvas.width;
        this.base.height = canvas.height;
      }
      const drawn = this.base.getContext('2d');
      if (drawn === null) return;
      drawn.setTransform(1, 0, 0, 1, 0, 0);
      drawn.clearRect(0, 0, canvas.width, canvas.height);
      drawn.setTransform(context.getTransform());
      this.measure();
      this.drawLinks(drawn);
      if (!this.nodesOnTop) this.drawNodes(drawn);
    }
    context.save();
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, canvas.width, canvas.height);
    context.drawImage(this.base, 0, 0);
    context.restore();
    const now = this.run !== null && this.time > 0 ? this.run.inFlight(this.time) : []; // before the clock moves: the network as it is
    this.drawFlightLines(context, now);
    if (this.nodesOnTop) this.drawNodes(context);
    this.drawFlight(context, now);
    this.drawHolders(context);
  }

  private stroke(context: CanvasRenderingContext2D, link: number): void {
    context.beginPath();
    this.trace(context, link);
    context.stroke();
  }

  // Adds a link to a path that is drawn as a whole, which is many times faster.
  private trace(context: CanvasRenderingContext2D, link: number): void {
    const p = this.paths[link]!;
    context.moveTo(p.x0, p.y0);
    if (p.straight) context.lineTo(p.x1, p.y1); // drawn faster than a curve
    else context.quadraticCurveTo(p.cx, p.cy, p.x1, p.y1);
  }

  private chosenLinks(): ReadonlySet<number> {
    const s = this.store.selection;
    if (s.kind === 'link') return new Set([s.link]);
    if (s.kind === 'message' && this.run) return new Set([this.run.flight.link[s.message]!]);
    if (s.kind === 'chain' && this.run) return new Set(s.messages.map((message) => this.run!.flight.link[message]!));
    if (s.kind === 'shard' && this.run) return new Set(this.run.transfersOfShard(s.shard).map((t) => this.run!.schedule.transfers!.link[t]!));
    if (s.kind === 'step' && this.run) {
      const { flight } = this.run;
      return new Set(Array.from(flight.link.filter((_, i) => flight.step[i] === s.step)));
    }
    return new Set();
  }

  private drawLinks(context: CanvasRenderingContext2D): void {
    const chosen = this.chosenLinks();
    const use = this.showUse ? this.run?.schedule.simulation?.use.busy_ps : undefined;
    const time = this.run?.time ?? 0;
    const { radius } = this.size();
    const thin = Math.max(0.4, Math.min(1.6, radius / 5));
    // Those of one colour are one path, which is many times faster.
    const shades = 64, byShade: number[][] = [];
    const isShown = (link: number): boolean => !this.cutLinks.has(link) && !chosen.has(link);
    const shares = this.shares ? (link: number) => this.shares![link]! : use && time > 0 ? (link: number) => use[link]! / (time * this.graph.links[link]!) : null;
    for (let link = 0; link < this.paths.length; ++link) {
      if (!isShown(link)) continue;
      const shade = shares === null ? 0 : Math.round(Math.max(0, Math.min(1, shares(link))) * shades);
      (byShade[shade] ??= []).push(link);
    }
    context.lineWidth = shares === null ? thin : thin * 1.8;
    byShade.forEach((links, shade) => {
      context.strokeStyle = shares === null ? LINK : heatColor(shade / shades);
      context.beginPath();
      for (const link of links) this.trace(context, link);
      context.stroke();
    });
    context.lineWidth = Math.max(2, thin * 1.6);
    context.strokeStyle = CUT;
    for (const link of this.cutLinks) this.stroke(context, link);
    context.lineWidth = Math.max(3, thin * 2);
    context.strokeStyle = CHOSEN;
    for (const link of chosen) this.stroke(context, link);
  }

  private drawNodes(context: CanvasRenderingContext2D): void {
    const { graph } = this;
    const { radius } = this.size();
    this.drawBoxes(context, radius);
    const s = this.store.selection;
    this.setFont(context, radius);
    context.textAlign = 'center';
    context.textBaseline = 'middle';
    for (let node = 0; node < graph.nodes; ++node) {
      const [x, y] = this.place(node);
      const inside = this.cutInside.has(node), chosen = s.kind === 'node' && s.node === node;
      context.fillStyle = isSwitch(graph, node) ? '#56616e' : inside ? '#fbe3e6' : '#ffffff';
      context.strokeStyle = chosen ? CHOSEN : inside ? CUT : '#3b4550';
      context.lineWidth = chosen ? 4 : inside ? 2 : Math.min(1.3, radius / 4);
      context.beginPath();
      if (isSwitch(graph, node) || graph.grouped) context.rect(x - radius, y - radius, 2 * radius, 2 * radius); else context.arc(x, y, radius, 0, 2 * Math.PI);
      context.fill();
      context.stroke();
      this.drawLabel(context, node, x, y, radius);
    }
  }

  // As large as the circles allow; in rows, as the longest name allows, where that can be read.
  private setFont(context: CanvasRenderingContext2D, radius: number): void {
    const least = 8, size = Math.max(least, Math.min(12, radius));
    const font = (pixels: number): string => `${pixels}px system-ui, sans-serif`;
    context.font = font(size);
    if (radius < 7 || !isWide(this.layout)) return;
    const longest = this.graph.labels.reduce((a, b) => (b.length > a.length ? b : a), '');
    const fits = (size * ((this.zoom * this.canvas.width) / this.inRow - 4)) / context.measureText(longest).width;
    if (fits < size && fits >= least) context.font = font(fits);
  }
  // For a name: of a node in rows, as much as is between the nodes of its row.
  private room(node: number, radius: number): number {
    return isWide(this.layout) ? (this.zoom * this.canvas.width) / (this.rowOf.get(this.layout.y[node]!) ?? this.inRow) : 5 * radius;
  }

  private drawBoxes(context: CanvasRenderingContext2D, radius: number): void {
    context.strokeStyle = '#8a939e';
    context.lineWidth = 1;
    context.setLineDash([5, 4]);
    for (const box of this.layout.boxes ?? []) {
      const places = box.map((node) => this.place(node));
      const xs = places.map(([x]) => x), ys = places.map(([, y]) => y);
      const left = Math.min(...xs) - radius - 4, top = Math.min(...ys) - radius - 4;
      context.strokeRect(left, top, Math.max(...xs) + radius + 4 - left, Math.max(...ys) + radius + 16 - top);
    }
    context.setLineDash([]);
  }

  // Inside where it is short, below where there is room; of long names the part behind the last point.
  private drawLabel(context: CanvasRenderingContext2D, node: number, x: number, y: number, radius: number): void {
    if (radius < 7) return;
    const room = this.room(node, radius);
    const whole = this.graph.labels[node]!, part = whole.slice(whole.lastIndexOf('.') + 1);
    const fits = (text: string, most: number): boolean => text.length > 0 && context.measureText(text).width <= most;
    const inside = [whole, part].find((text) => fits(text, 2 * radius - 2));
    const text = fits(whole, room - 4) && inside !== whole ? whole : inside ?? [part].find((one) => fits(one, room - 4));
    if (text === undefined) return;
    const below = inside !== text;
    if (below) { // over the links that come from there
      context.strokeStyle = '#ffffff';
      context.lineWidth = 3;
      context.strokeText(text, x, y + radius + 9);
    }
    context.fillStyle = !below && isSwitch(this.graph, node) ? '#ffffff' : '#1a1a1a';
    context.fillText(text, x, below ? y + radius + 9 : y);
  }

  // Few enough to be drawn in every frame, over the lines of what is on its way.
  private get nodesOnTop(): boolean { return this.graph.nodes <= 600; }

  private drawFlightLines(context: CanvasRenderingContext2D, now: number[]): void {
    if (this.run === null || now.length === 0) return;
    const { flight } = this.run;
    const { radius } = this.size();
    const chosen = this.chosenLinks();
    context.strokeStyle = FLIGHT;
    context.lineWidth = Math.max(1, Math.min(2.5, radius / 4));
    context.globalAlpha = 0.55;
    context.beginPath();
    for (const message of now) {
      const link = flight.link[message]!;
      if (!this.cutLinks.has(link) && !chosen.has(link)) this.trace(context, link);
    }
    context.stroke();
    context.globalAlpha = 1;
  }

  private drawFlight(context: CanvasRenderingContext2D, now: number[]): void {
    if (this.run === null || now.length === 0) return;
    const { flight } = this.run;
    const few = now.length <= 3000;
    const { radius } = this.size();
    context.fillStyle = FLIGHT;
    const dot = Math.max(1.5, Math.min(5, radius * 0.45));
    for (const message of now) {
      const p = this.paths[flight.link[message]!]!;
      const way = (this.time - flight.start[message]!) / Math.max(1, flight.arrive[message]! - flight.start[message]!);
      const a = (1 - way) * (1 - way), b = 2 * way * (1 - way), c = way * way;
      const x = a * p.x0 + b * p.cx + c * p.x1, y = a * p.y0 + b * p.cy + c * p.y1;
      if (few) {
        context.beginPath();
        context.arc(x, y, dot, 0, 2 * Math.PI);
        context.fill();
      } else {
        context.fillRect(x - dot / 2, y - dot / 2, dot, dot);
      }
    }
  }

  // Who holds the chosen shard by now.
  private drawHolders(context: CanvasRenderingContext2D): void {
    if (this.arrivals === null) return;
    const { radius } = this.size();
    context.strokeStyle = HOLDS;
    context.lineWidth = 4;
    for (const [node, arrive] of this.arrivals) {
      if (arrive > this.time) continue;
      const [x, y] = this.place(node);
      context.beginPath();
      context.arc(x, y, radius + 3, 0, 2 * Math.PI);
      context.stroke();
    }
  }

  private chosen(): void {
    const s: Selection = this.store.selection;
    this.arrivals = null;
    if (s.kind === 'shard' && this.run) {
      const transfers = this.run.schedule.transfers;
      this.arrivals = new Map();
      for (const t of this.run.transfersOfShard(s.shard)) {
        const message = this.run.messageOfTransfer(t);
        const link = transfers?.link[t];
        if (link === undefined || message < 0) continue;
        const [tail, head] = [this.graph.tail[link]!, this.graph.head[link]!];
        if (!this.arrivals.has(tail)) this.arrivals.set(tail, 0);
        this.arrivals.set(head, Math.min(this.arrivals.get(head) ?? Infinity, this.run.flight.arrive[message]!));
      }
    }
    this.canvas.redraw();
  }

  private click(x: number, y: number): void {
    const { radius } = this.size();
    for (let node = this.graph.nodes - 1; node >= 0; --node) {
      const [nx, ny] = this.place(node);
      if (Math.hypot(nx - x, ny - y) <= radius + 2) return this.store.select({ kind: 'node', node });
    }
    this.measure();
    let best = -1, distance = 6;
    this.paths.forEach((p, link) => {
      for (let i = 0; i <= 12; ++i) {
        const w = i / 12, a = (1 - w) * (1 - w), b = 2 * w * (1 - w), c = w * w;
        const d = Math.hypot(a * p.x0 + b * p.cx + c * p.x1 - x, a * p.y0 + b * p.cy + c * p.y1 - y);
        if (d < distance) [best, distance] = [link, d];
      }
      const d = toSegment(x, y, p.x0, p.y0, p.x1, p.y1);
      if (Math.abs(this.turn[link]!) < 0.01 && d < distance) [best, distance] = [link, d];
    });
    this.store.select(best >= 0 ? { kind: 'link', link: best } : { kind: 'none' });
  }

  private key(event: KeyboardEvent): void {
    const s = this.store.selection;
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (step !== undefined) {
      const node = s.kind === 'node' ? (s.node + step + this.graph.nodes) % this.graph.nodes : 0;
      this.store.select({ kind: 'node', node });
    } else if (event.key === '+' || event.key === '=') this.zoomBy(1.4);
    else if (event.key === '-') this.zoomBy(1 / 1.4);
    else if (event.key === '0') this.fit();
    else if (event.key === 'Escape') this.store.select({ kind: 'none' });
    else return;
    event.preventDefault();
  }

  private fit(): void {
    [this.zoom, this.panX, this.panY] = [1, 0, 0];
    this.canvas.redraw();
  }

  private zoomBy(factor: number, x = this.canvas.width / 2, y = this.canvas.height / 2): void {
    const zoom = Math.max(0.2, Math.min(200, this.zoom * factor));
    const real = zoom / this.zoom;
    const { width, height } = this.canvas;
    this.panX = x - width / 2 - (x - width / 2 - this.panX) * real;
    this.panY = y - height / 2 - (y - height / 2 - this.panY) * real;
    this.zoom = zoom;
    this.canvas.redraw();
  }
}

const isWide = (layout: Layout): boolean => layout.kind === 'layers' || layout.kind === 'boxes';

function countRows(y: number[]): Map<number, number> {
  const rows = new Map<number, number>();
  for (const at of y) rows.set(at, (rows.get(at) ?? 0) + 1);
  return rows;
}
const mostInRow = (y: number[]): number => Math.max(...countRows(y).values());

function toSegment(x: number, y: number, x0: number, y0: number, x1: number, y1: number): number {
  const dx = x1 - x0, dy = y1 - y0, square = dx * dx + dy * dy || 1;
  const w = Math.max(0, Math.min(1, ((x - x0) * dx + (y - y0) * dy) / square));
  return Math.hypot(x0 + w * dx - x, y0 + w * dy - y);
}

// 0 for a straight line; parallel links bend more and more, links around a grid bend outwards.
export function bends(graph: Graph): Float64Array {
  const seen = new Map<number, number>();
  const turn = new Float64Array(graph.tail.length);
  graph.tail.forEach((tail, link) => {
    const key = tail * graph.nodes + graph.head[link]!;
    const parallel = seen.get(key) ?? 0;
    seen.set(key, parallel + 1);
    turn[link] = parallel + (goesAround(graph, tail, graph.head[link]!) ? 1.2 : 0);
  });
  return turn;
}

function goesAround(graph: Graph, tail: number, head: number): boolean {
  const { grid } = graph;
  if (!grid?.wraps || grid.dims.filter((side) => side > 1).length < 2) return false;
  let [a, b] = grid.at ? [grid.at[tail]!, grid.at[head]!] : [tail, head];
  for (const side of [...grid.dims].reverse()) {
    if (Math.abs((a % side) - (b % side)) > 1) return true;
    a = Math.floor(a / side);
    b = Math.floor(b / side);
  }
  return false;
}
