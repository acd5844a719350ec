// Where the nodes of a graph are drawn: by its structure where it has one. Positions are in a square from 0 to 1;
// the same for the same graph everywhere.
import { forceCenter, forceLink, forceManyBody, forceSimulation, forceX, forceY, type SimulationNodeDatum } from 'd3-force';
import type { Grid } from './data';
import { isSwitch, type Graph } from './model';

export interface Layout { kind: 'point' | 'grid' | 'ring' | 'boxes' | 'layers' | 'force'; x: number[]; y: number[]; boxes?: number[][] }

function spread(kind: Layout['kind'], x: number[], y: number[]): Layout {
  const fit = (values: number[], span: number): number[] => {
    const low = Math.min(...values);
    const width = Math.max(...values) - low;
    return values.map((value) => (span > 0 ? 0.5 + (value - low - width / 2) / span : 0.5));
  };
  const span = Math.max(Math.max(...x) - Math.min(...x), Math.max(...y) - Math.min(...y));
  return { kind, x: fit(x, span), y: fit(y, span) };
}

function onCircle(order: number[], nodes: number): Layout {
  const x = new Array<number>(nodes).fill(0.5), y = new Array<number>(nodes).fill(0.5);
  order.forEach((node, i) => {
    const angle = (2 * Math.PI * i) / order.length - Math.PI / 2;
    x[node] = 0.5 + 0.5 * Math.cos(angle);
    y[node] = 0.5 + 0.5 * Math.sin(angle);
  });
  return { kind: 'ring', x, y };
}

// Of three sides: planes beside each other, each a little lower; of more, grids of grids.
function onGrid({ dims, wraps, at: places }: Grid, nodes: number): Layout {
  const long = dims.filter((side) => side > 1);
  if (long.length === 1 && wraps && !places) return onCircle(Array.from({ length: nodes }, (_, i) => i), nodes);
  const x: number[] = [], y: number[] = [];
  for (let node = 0; node < nodes; ++node) {
    let rest = places ? places[node]! : node, scaleX = 1, scaleY = 1, atX = 0, atY = 0;
    [...long].reverse().forEach((side, i) => {
      const at = rest % side;
      rest = Math.floor(rest / side);
      if (i % 2 === 0) {
        atX += at * scaleX;
        if (i > 0) atY += at * scaleY * 0.5;
        scaleX *= side + (i === 0 && long.length > 2 ? 1 : 0.6);
      } else {
        atY += at * scaleY;
        scaleY *= side + 0.6;
      }
    });
    x.push(atX);
    y.push(atY);
  }
  return spread('grid', x, y);
}

function neighboursOf(graph: Graph): number[][] {
  const sets = Array.from({ length: graph.nodes }, () => new Set<number>());
  graph.tail.forEach((tail, link) => {
    sets[tail]!.add(graph.head[link]!);
    sets[graph.head[link]!]!.add(tail);
  });
  return sets.map((set) => [...set].sort((a, b) => a - b));
}

// The order around a ring, or null where the graph is none.
function ringOrder(neighbours: number[][]): number[] | null {
  if (neighbours.length < 3 || neighbours.some((list) => list.length !== 2)) return null;
  const order = [0];
  for (let before = -1, at = 0; ;) {
    const next: number = neighbours[at]![0] === before ? neighbours[at]![1]! : neighbours[at]![0]!;
    if (next === 0) break;
    order.push(next);
    [before, at] = [at, next];
    if (order.length > neighbours.length) return null;
  }
  return order.length === neighbours.length ? order : null;
}

// Ranks at the bottom, switches above them by their distance from the ranks; in each layer in the order of the
// mean place of their neighbours, so that boxes and rails stand together.
function inLayers(graph: Graph, neighbours: number[][]): Layout {
  const layer = new Array<number>(graph.nodes).fill(-1);
  let front: number[] = [];
  for (let node = 0; node < graph.nodes; ++node)
    if (!isSwitch(graph, node)) {
      layer[node] = 0;
      front.push(node);
    }
  while (front.length > 0) {
    const next: number[] = [];
    for (const node of front)
      for (const other of neighbours[node]!)
        if (layer[other] === -1) {
          layer[other] = layer[node]! + 1;
          next.push(other);
        }
    front = next;
  }
  const layers: number[][] = [];
  layer.forEach((of, node) => (layers[Math.max(0, of)] ??= []).push(node));
  const place = new Array<number>(graph.nodes).fill(0);
  const put = (): void => layers.forEach((nodes) => nodes.forEach((node, i) => { place[node] = (i + 0.5) / nodes.length; }));
  put();
  const mean = (node: number, from: number): number => {
    const near = neighbours[node]!.filter((other) => layer[other] === from);
    return near.length > 0 ? near.reduce((sum, other) => sum + place[other]!, 0) / near.length : place[node]!;
  };
  for (let sweep = 0; sweep < 4; ++sweep) {
    for (let i = 1; i < layers.length; ++i) {
      const key = new Map(layers[i]!.map((node) => [node, mean(node, i - 1)]));
      layers[i]!.sort((a, b) => key.get(a)! - key.get(b)! || a - b);
    }
    put();
    if (layers.length < 2) break;
    const key = new Map(layers[0]!.map((node) => [node, mean(node, 1)]));
    layers[0]!.sort((a, b) => key.get(a)! - key.get(b)! || a - b);
    put();
  }
  const height = layers.length > 1 ? layers.length - 1 : 1;
  return { kind: 'layers', x: place.slice(), y: layer.map((of) => 1 - Math.max(0, of) / height) };
}

// Boxes of ranks behind a switch of their own, joined by rails: ranks in a row by box, the box's switch below, rails
// above by their distance from the ranks. Null where the network is not of that kind.
function inBoxes(graph: Graph, neighbours: number[][]): Layout | null {
  const ranksOf = neighbours.map((list, node) => (isSwitch(graph, node) ? list.filter((other) => !isSwitch(graph, other)) : []));
  const taken = new Array<boolean>(graph.ranks).fill(false);
  const boxes: { node: number; ranks: number[] }[] = [];
  const inARow = ranksOf.map((ranks, node) => ({ node, ranks })).filter(({ ranks }) => ranks.length >= 2 && ranks.at(-1)! - ranks[0]! === ranks.length - 1);
  for (const box of inARow.sort((a, b) => a.ranks.length - b.ranks.length || a.node - b.node)) {
    if (box.ranks.some((rank) => taken[rank])) continue;
    for (const rank of box.ranks) taken[rank] = true;
    boxes.push(box);
  }
  const own = new Set(boxes.map((box) => box.node));
  const rails = ranksOf.flatMap((ranks, node) => (ranks.length > 0 && !own.has(node) ? [node] : []));
  if (boxes.length < 2 || rails.length === 0 || taken.includes(false)) return null;
  const away = new Array<number>(graph.nodes).fill(-1);
  let front = rails;
  for (let far = 1; front.length > 0; ++far) {
    for (const node of front) away[node] = far;
    front = [...new Set(front.flatMap((node) => neighbours[node]!))].filter((node) => isSwitch(graph, node) && !own.has(node) && away[node] === -1).sort((a, b) => a - b);
  }
  const layers: number[][] = [];
  const x = new Array<number>(graph.nodes).fill(0.5), y = new Array<number>(graph.nodes).fill(0);
  for (let node = graph.ranks; node < graph.nodes; ++node) if (!own.has(node)) (layers[Math.max(1, away[node]!)] ??= []).push(node);
  const high = layers.length - 1;
  const gap = 1; // of a rank's width between boxes
  const width = graph.ranks + gap * (boxes.length - 1);
  let left = 0;
  for (const box of boxes.sort((a, b) => a.ranks[0]! - b.ranks[0]!)) {
    box.ranks.forEach((rank, i) => { [x[rank], y[rank]] = [(left + i + 0.5) / width, 0.72]; });
    [x[box.node], y[box.node]] = [(left + box.ranks.length / 2) / width, 1];
    left += box.ranks.length + gap;
  }
  layers.forEach((nodes, far) => nodes.forEach((node, i) => { [x[node], y[node]] = [(i + 0.5) / nodes.length, 0.45 * (1 - far / high)]; }));
  return { kind: 'boxes', x, y, boxes: boxes.map((box) => [...box.ranks, box.node]) };
}

function byForces(graph: Graph, neighbours: number[][]): Layout {
  const nodes: SimulationNodeDatum[] = Array.from({ length: graph.nodes }, (_, index) => ({ index }));
  const links = neighbours.flatMap((list, source) => list.filter((target) => source < target).map((target) => ({ source, target })));
  const simulation = forceSimulation(nodes).force('link', forceLink(links).distance(40)).force('charge', forceManyBody().strength(-120))
    .force('center', forceCenter()).force('x', forceX().strength(0.05)).force('y', forceY().strength(0.05)).stop();
  const passes = Math.max(20, Math.min(300, Math.floor(1.5e6 / (graph.nodes + links.length))));
  simulation.alphaDecay(1 - 0.001 ** (1 / passes));
  for (let i = 0; i < passes; ++i) simulation.tick();
  return spread('force', nodes.map((node) => node.x ?? 0), nodes.map((node) => node.y ?? 0));
}

export function layOut(graph: Graph): Layout {
  if (graph.nodes === 1) return { kind: 'point', x: [0.5], y: [0.5] };
  const { grid } = graph;
  if (grid && (grid.at || grid.dims.reduce((a, b) => a * b, 1) === graph.nodes)) return onGrid(grid, graph.nodes);
  const neighbours = neighboursOf(graph);
  if (graph.ranks < graph.nodes) return inBoxes(graph, neighbours) ?? inLayers(graph, neighbours);
  const ring = ringOrder(neighbours);
  if (ring) return onCircle(ring, graph.nodes);
  // Few nodes with most of all links: a circle shows each of them.
  const pairs = neighbours.reduce((sum, list) => sum + list.length, 0);
  if (graph.nodes <= 16 && pairs >= 0.4 * graph.nodes * (graph.nodes - 1)) return onCircle(Array.from({ length: graph.nodes }, (_, i) => i), graph.nodes);
  return byForces(graph, neighbours);
}
