import { deflateSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { isLight } from '../src/colors';
import { decades, powersOfTwo, round, spreadOut, whole } from '../src/chart';
import { bestInWords, busbw, curvesOf } from '../src/comparison_view';
import { optimalIn, staircase } from '../src/designs_view';
import { certificate, lengthShares, loadShares } from '../src/flow_view';
import { isExecuted, mostUnlikeFirst } from '../src/compare_view';
import { checkData, unpack, type Comparison, type Designs, type Flow, type Network, type Operations, type PageData, type Schedule, type Training } from '../src/data';
import { layOut } from '../src/layout';
import { Run, graphOf, linksOut, lowerBound } from '../src/model';
import { sumUp } from '../src/operations_view';
import { progressOver } from '../src/progress_view';
import { Waits } from '../src/waits';
import { moveColumns, roundStep } from '../src/timeline_view';
import { lanesOf, partsOf } from '../src/training_view';
import { bytes, fitted, instant, instants, percent, rate, seconds, shortNames } from '../src/words';

function network(nodes: number, pairs: [number, number][], more: Partial<Network> = {}): Network {
  return { name: 'test', ranks: nodes, nodes, links_total: pairs.length, host_limits: 0, names: null, grid: null,
    links: { tail: pairs.map(([a]) => a), head: pairs.map(([, b]) => b), bandwidth: pairs.map(() => 1e9), alpha_ps: pairs.map(() => 500) }, ...more };
}
const both = (pairs: [number, number][]): [number, number][] => pairs.flatMap(([a, b]): [number, number][] => [[a, b], [b, a]]);

// Two ranks: rank 0 sends shard 0 in step 0, then rank 1 sends shard 1 in step 1.
const pair = network(2, [[0, 1], [1, 0]]);
const schedule: Schedule = { network: 0, label: 'x', collective: 'all-gather', algorithm: 'hand', kind: 'step', steps: 2, shards: 2, units_per_shard: 1,
  transfers_total: 2, size_bytes: 2048, verified: true, faults_total: 0, faults: [], note: '',
  simulation: { link_model: 'held', mode: 'barrier', time_ps: 2000, algbw: 1, busbw: 1, messages: 2, max_in_flight: 1, use: { busy_ps: [1000, 1000], bytes: [1024, 1024] } },
  transfers: { shard: [0, 1], link: [0, 1], begin: [0, 0], end: [1, 1], step: [0, 1] },
  messages: { link: [0, 1], step: [0, 1], start_ps: [0, 1000], free_ps: [1000, 2000], arrive_ps: [1000, 2000], bytes: [1024, 1024], first: [0, 1] } };
const page = (): PageData => structuredClone({ format: 'tutti-explorer', version: 1, command: 'test', networks: [pair], limits: [], schedules: [schedule] });

describe('data', () => {
  it('is unpacked from zlib in base64', async () => {
    const text = JSON.stringify(page());
    expect(await unpack(deflateSync(text).toString('base64'), Buffer.byteLength(text))).toBe(text);
  });
  it('says when it is cut off, damaged or of another length', async () => {
    const packed = deflateSync('x'.repeat(10000) + Math.E).toString('base64');
    await expect(unpack(packed.slice(0, packed.length / 2 & ~3), 10000)).rejects.toThrow('does not decompress');
    await expect(unpack('%%%', 1)).rejects.toThrow('no base64');
    await expect(unpack(packed, 5)).rejects.toThrow('bytes where 5 were written');
  });
  const faults: [string, (data: PageData) => void, string][] = [
    ['another format', (d) => { d.format = 'x'; }, 'not that of an explorer page'],
    ['a later version', (d) => { d.version = 2; }, 'version 2'],
    ['no network', (d) => { d.networks = []; }, 'names no network'],
    ['a link to nowhere', (d) => { d.networks[0]!.links!.head[0] = 7; }, 'a link has no such end'],
    ['a schedule of no network', (d) => { d.schedules[0]!.network = 3; }, 'network is missing'],
    ['a transfer over no link', (d) => { d.schedules[0]!.transfers!.link[1] = 9; }, 'a transfer goes over no link'],
    ['columns of unequal length', (d) => { d.schedules[0]!.messages!.bytes.pop(); }, 'messages are damaged'],
    ['a number that is none', (d) => { d.schedules[0]!.messages!.start_ps[0] = NaN; }, 'messages are damaged'],
  ];
  it.each(faults)('refuses %s', (_, spoil, message) => {
    const data = page();
    spoil(data);
    expect(() => checkData(data)).toThrow(message);
  });
  it('takes what is fine', () => expect(checkData(page()).schedules).toHaveLength(1));
});

describe('run', () => {
  const run = new Run(graphOf(pair), schedule);
  it('finds the message of a transfer and the transfers of a message', () => {
    expect([0, 1, 2, -1].map((t) => run.messageOfTransfer(t))).toEqual([0, 1, -1, -1]);
    expect(run.transfersOfMessage(1, 5)).toEqual([1]);
    expect(run.transfersOfShard(0)).toEqual([0]);
  });
  it('knows what is on its way', () => {
    expect(run.inFlight(0)).toEqual([0]);
    expect(run.inFlight(999)).toEqual([0]);
    expect(run.inFlight(1000)).toEqual([1]);
    expect(run.inFlight(2000)).toEqual([]);
  });
  it('sums up steps', () => expect(run.steps()).toEqual([
    { step: 0, start: 0, end: 1000, messages: 1, bytes: 1024, busiest: 0, busiestBytes: 1024, use: 0.5 },
    { step: 1, start: 1000, end: 2000, messages: 1, bytes: 1024, busiest: 1, busiestBytes: 1024, use: 0.5 }]));
  it('searches like a scan', () => {
    const values = Float64Array.from([1, 2, 2, 5]);
    for (const value of [0, 1, 2, 3, 5, 6]) expect(lowerBound(values, value)).toBe([...values, Infinity].findIndex((v) => v >= value));
  });
  it('names the links out of a set', () => expect(linksOut(graphOf(pair), new Set([0]))).toEqual([0]));
});

describe('comparison', () => {
  it('orders rows by how far apart they are', () => expect(mostUnlikeFirst([[1, 1], [0.2, 0.9], [0.5, 0.1], [2, 2]])).toEqual([1, 2, 0, 3]));
  it('tells executed from simulated', () => {
    expect(isExecuted(schedule)).toBe(false);
    expect(isExecuted({ ...schedule, simulation: { ...schedule.simulation!, mode: 'executed' } })).toBe(true);
  });
});

describe('charts', () => {
  it('place ticks on round numbers', () => {
    expect(decades(3, 400)).toEqual([5, 10, 20, 50, 100, 200]);
    expect(decades(1, 1e6)).toEqual([1, 10, 100, 1e3, 1e4, 1e5, 1e6]);
    expect(powersOfTwo(1024, 2 ** 30)).toEqual([10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30].map((power) => 2 ** power));
    expect(round(0, 1)).toEqual([0, 0.2, 0.4, 0.6, 0.8, 1]);
    expect(whole(3, 6)).toEqual([3, 4, 5, 6]);
  });
  it('push labels apart, in order, within the room', () => {
    expect(spreadOut([10, 11, 40], 10, 0, 50)).toEqual([10, 20, 40]);
    const out = spreadOut([49, 50, 50, 50], 10, 0, 50);
    expect(out).toEqual([20, 30, 40, 50]);
    expect(spreadOut([5, 5, 5], 100, 0, 10)).toEqual([0, 5, 10]);
  });
});

describe('algorithms over sizes', () => {
  const row = (algorithm: string, size: number, time: number): Comparison['rows'][number] => ({ algorithm, size_bytes: size, time_ps: time, analytic_ps: time, bound_ps: 1, steps: 1 });
  const comparison: Comparison = { network: 0, collective: 'all-reduce', how: 'x', bus_factor: 1.5, rows: [row('b', 4096, 9), row('a', 1024, 5), row('b', 1024, 7)], curves: [], bound: { name: 'bound', size_bytes: [1024], time_ps: [1] },
    best: [{ algorithm: 'a', from_bytes: 1 }, { algorithm: 'b', from_bytes: 2049 }], missing: [] };
  it('takes the rows where there are no curves', () => expect(curvesOf(comparison)).toEqual([{ name: 'b', size_bytes: [1024, 4096], time_ps: [7, 9] }, { name: 'a', size_bytes: [1024], time_ps: [5] }]));
  it('says where the fastest changes', () => {
    expect(bestInWords(comparison.best)).toBe('a up to 2 KiB, then b');
    expect(bestInWords([{ algorithm: 'a', from_bytes: 1 }])).toBe('a at every size');
    expect(bestInWords([])).toContain('not known');
  });
  it('counts bus bandwidth in bytes a second', () => expect(busbw(1000, 1e6, 1.5)).toBe(1.5e9));
  it('is refused where a curve is damaged', () => {
    expect(checkData({ ...page(), comparison })).toBeDefined();
    expect(() => checkData({ ...page(), comparison: { ...comparison, bound: { name: 'bound', size_bytes: [1, 2], time_ps: [1] } } })).toThrow('a curve is damaged');
  });
});

describe('designs', () => {
  const design = (tl: number, exact: string): Designs['rows'][number] => ({ recipe: 'x', algorithm: 'bfb', network: 0, tl, tb: { exact, value: 1 }, diameter: 1, bidirectional: 1, reasons: [] });
  const designs: Designs = { ranks: 4, degree: 2, collective: 'all-gather', one_way: 0, tl_bound: 2, tb_bound: { exact: '3/4', value: 0.75 }, best: -1, rows: [design(2, '1'), design(3, '3/4'), design(2, '3/4'), design(4, '1')] };
  it('are optimal by exact values', () => expect(designs.rows.map((_, i) => optimalIn(designs, i))).toEqual(['steps', 'bandwidth', 'steps and bandwidth', '-']));
  it('bound what is reached by a staircase', () => expect(staircase([{ tl: 7, tb: 1 }, { tl: 6, tb: 2 }])).toEqual([{ x: 6, y: 2 }, { x: 7, y: 2 }, { x: 7, y: 1 }]));
  it('are refused without their network', () => {
    expect(checkData({ ...page(), designs })).toBeDefined();
    expect(() => checkData({ ...page(), designs: { ...designs, rows: [{ ...design(1, '1'), network: 5 }] } })).toThrow('design 0: its network is missing');
  });
});

describe('flows', () => {
  const flow: Flow = { network: 0, f: { exact: '1/2', value: 0.5 }, f_upper: { exact: '1/2', value: 0.5 }, proven: 1, min_bandwidth: 1e9, demand: 0, load: [1e9, 5e8], length: [4, 1] };
  it('load links up to their bandwidth', () => expect(loadShares(flow, graphOf(pair))).toEqual([1, 0.5]));
  it('measure lengths by the largest', () => expect([lengthShares(flow), lengthShares({ ...flow, length: [] })]).toEqual([[1, 0.25], []]));
  it('say what proves them', () => {
    expect(certificate(flow, graphOf(pair))).toMatch(/^Reached: 1 of 2 links are full at the rate 0.5, .* the optimum is proven\.$/);
    expect(certificate({ ...flow, proven: 0 }, graphOf(pair))).not.toContain('optimum');
  });
  it('are refused with too few loads', () => {
    expect(checkData({ ...page(), flows: [flow] })).toBeDefined();
    expect(() => checkData({ ...page(), flows: [{ ...flow, load: [1] }] })).toThrow('flow 0: its loads are damaged');
  });
});

describe('training', () => {
  const events = { activity: [0, 2], start_ps: [0, 5], end_ps: [10, 20], name: ['layer', 'bucket'] };
  const training: Training = { network: 0, workload: 'x', how: '', omitted: '', rows: [{ algorithm: 'ring', iteration_ps: 20, forward_ps: 4, backward_ps: 6, tensor_ps: 0, all_to_all_ps: 0, exposed_ps: 10, gradients_ps: 15, events }] };
  it('is made of parts', () => expect(partsOf(training.rows[0]!).map(([name, , ps]) => [name, ps])).toEqual([['forward', 4], ['backward', 6], ['gradients that show', 10]]));
  it('runs in two lanes', () => {
    const { graph, schedule: lanes, names } = lanesOf(training);
    expect(graph.labels).toEqual(['ring: compute', 'ring: network']);
    expect([lanes.messages?.link, lanes.messages?.step, names]).toEqual([[0, 1], [0, 2], ['layer', 'bucket']]);
    expect(new Run(graph, lanes).time).toBe(20);
  });
  it('is refused with damaged events', () => {
    expect(checkData({ ...page(), training })).toBeDefined();
    expect(() => checkData({ ...page(), training: { ...training, rows: [{ ...training.rows[0]!, events: { ...events, activity: [0, 9] } }] } })).toThrow('training 0: its events are damaged');
  });
});

describe('layout', () => {
  const ring = (n: number): [number, number][] => both(Array.from({ length: n }, (_, i): [number, number] => [i, (i + 1) % n]));
  it('puts one node in the middle', () => expect(layOut(graphOf(network(1, [])))).toEqual({ kind: 'point', x: [0.5], y: [0.5] }));
  it('draws rings as rings, whatever their numbers', () => expect(layOut(graphOf(network(9, ring(9)))).kind).toBe('ring'));
  it('draws grids by their sides', () => {
    const layout = layOut(graphOf(network(6, ring(6), { grid: { dims: [2, 3], wraps: false } })));
    expect(layout.kind).toBe('grid');
    expect(layout.y[0]).toBe(layout.y[2]);
    expect(layout.x[0]).toBe(layout.x[3]);
  });
  it('draws what is left of a grid on it', () => {
    const left = network(3, both([[0, 1], [1, 2]]), { names: ['0', '1', '5'], grid: { dims: [2, 3], wraps: false, at: [0, 1, 5] } });
    const layout = layOut(graphOf(left));
    expect(layout.kind).toBe('grid');
    expect(layout.y[0]).toBe(layout.y[1]);
    expect(layout.y[2]!).toBeGreaterThan(layout.y[0]!);
    expect(() => checkData({ ...page(), networks: [{ ...left, grid: { dims: [2, 3], wraps: false, at: [0, 1, 6] } }], schedules: [] })).toThrow('a node has no place on its grid');
  });
  it('draws switches above ranks', () => {
    const layout = layOut(graphOf(network(4, both([[0, 2], [1, 3], [2, 3]]), { ranks: 2 })));
    expect(layout.kind).toBe('layers');
    expect(layout.y[2]!).toBeLessThan(layout.y[0]!);
  });
  it('draws boxes below their rails', () => {
    // Two boxes of two ranks behind switches 4 and 5; rails 6 and 7 join the first and the second of each.
    const layout = layOut(graphOf(network(8, both([[0, 4], [1, 4], [2, 5], [3, 5], [0, 6], [2, 6], [1, 7], [3, 7]]), { ranks: 4 })));
    expect(layout.kind).toBe('boxes');
    expect(layout.boxes).toEqual([[0, 1, 4], [2, 3, 5]]);
    expect(layout.y[4]!).toBeGreaterThan(layout.y[0]!);
    expect(layout.y[6]!).toBeLessThan(layout.y[0]!);
  });
  it('keeps nodes apart and inside, the same twice', () => {
    for (const dims of [[4, 4], [3, 3, 3], [2, 3, 4, 2], [5]]) {
      const nodes = dims.reduce((a, b) => a * b, 1);
      const graph = graphOf(network(nodes, ring(nodes), { grid: { dims, wraps: true } }));
      const layout = layOut(graph);
      const places = layout.x.map((x, i) => `${x.toFixed(4)} ${layout.y[i]!.toFixed(4)}`);
      expect(new Set(places).size).toBe(nodes);
      expect([...layout.x, ...layout.y].every((v) => v >= -1e-9 && v <= 1 + 1e-9)).toBe(true);
      expect(layOut(graph)).toEqual(layout);
    }
  });
  it('lets forces place the rest', () => {
    const graph = graphOf(network(20, both(Array.from({ length: 30 }, (_, i): [number, number] => [i % 20, (i * 7 + 3) % 20]).filter(([a, b]) => a !== b))));
    const layout = layOut(graph);
    expect(layout.kind).toBe('force');
    expect(layout.x.every(Number.isFinite)).toBe(true);
    expect(layOut(graph)).toEqual(layout);
  });
});

describe('who waits for whom', () => {
  // A ring of three, eager: 0 sends shard 0 to 1 (late), 1 passes it on to 2 as it has it; 1 sends its own first.
  const ring3 = network(3, [[0, 1], [1, 2], [2, 0]]);
  const eager: Schedule = { ...schedule, steps: 2, shards: 3, transfers_total: 3,
    simulation: { ...schedule.simulation!, mode: 'eager', time_ps: 5000, use: { busy_ps: [2000, 3000, 0], bytes: [1, 2, 0] } },
    transfers: { shard: [0, 1, 0], link: [0, 1, 1], begin: [0, 0, 0], end: [1, 1, 1], step: [0, 0, 1] },
    messages: { link: [0, 1, 1], step: [0, 0, 1], start_ps: [0, 0, 3000], free_ps: [3000, 1000, 5000], arrive_ps: [3000, 1000, 5000], bytes: [1, 1, 1], first: [0, 1, 2] } };
  const waits = new Waits(new Run(graphOf(ring3), eager));
  it('is for what comes last', () => {
    expect(waits.causeOf(0)).toEqual({ kind: 'none', message: -1, at: 0, idle: 0 });
    expect(waits.causeOf(2)).toEqual({ kind: 'data', message: 0, at: 3000, idle: 2000 });
    expect(waits.chainTo(waits.last).map((one) => one.message)).toEqual([0, 2]);
    expect(waits.timeOf(waits.chainTo(2))).toEqual({ moving: 5000, standing: 0 });
    expect(waits.pairs()).toEqual([{ waiter: 1, for: 0, idle: 2000, messages: 1 }]);
  });
  it('is for the link where that is taken longer', () => {
    const taken = structuredClone(eager);
    [taken.messages!.free_ps[1], taken.messages!.arrive_ps[1], taken.messages!.start_ps[2]] = [4000, 4000, 4000];
    expect(new Waits(new Run(graphOf(ring3), taken)).causeOf(2)).toEqual({ kind: 'link', message: 1, at: 4000, idle: 0 });
  });
  it('is for the step before behind barriers', () => {
    const barrier = structuredClone(eager);
    barrier.simulation!.mode = 'barrier';
    barrier.transfers!.shard[2] = 2; // which nobody has to bring
    barrier.transfers!.link[2] = barrier.messages!.link[2] = 2;
    expect(new Waits(new Run(graphOf(ring3), barrier)).causeOf(2)).toMatchObject({ kind: 'step', message: 0, idle: 3000 });
  });
  it('takes what came in last of executions', () => {
    const { transfers: _, ...executed } = structuredClone(eager);
    expect(new Waits(new Run(graphOf(ring3), { ...executed, simulation: { ...executed.simulation!, mode: 'executed' } })).causeOf(2)).toMatchObject({ kind: 'data', message: 0 });
  });
});

describe('progress', () => {
  it('counts bytes evenly while messages move', () => {
    const run = new Run(graphOf(pair), schedule);
    expect(progressOver(run, new Set([0]), 4).points).toEqual([{ x: 0, y: 0 }, { x: 500, y: 512 }, { x: 1000, y: 1024 }, { x: 1500, y: 1024 }, { x: 2000, y: 1024 }]);
    expect(progressOver(run, new Set([0, 1]), 2)).toMatchObject({ capacity: 2e9, total: 2048, links: 2 });
  });
});

describe('operations', () => {
  const operations: Operations = { title: 'x', how: '', omitted: '', lanes: ['rank 0', 'rank 4'], events: { lane: [0, 0, 1], sequence: [7, 7, 7], waits: [1, 0, 0], bytes: [8, 8, 8], start_ps: [0, 5, 20], end_ps: [5, 40, 41], name: ['waits', 'all-reduce', 'all-reduce'] } };
  it('say who came last', () => expect(sumUp(operations)).toEqual([{ sequence: 7, name: 'all-reduce', bytes: 8, first: 0, last: 20, lastLane: 1, end: 41 }]));
  it('need no network, but whole events', () => {
    expect(checkData({ ...page(), networks: [], schedules: [], operations })).toBeDefined();
    expect(() => checkData({ ...page(), operations: { ...operations, events: { ...operations.events, lane: [0, 0, 2] } } })).toThrow('operations: their events are damaged');
  });
});

describe('words', () => {
  it('name units', () => {
    expect([0, 999, 1e3, 1.5e6, 2e12].map(seconds)).toEqual(['0 ps', '999 ps', '1 ns', '1.5 us', '2 s']);
    expect([1, 1024, 3 * 2 ** 20].map(bytes)).toEqual(['1 B', '1 KiB', '3 MiB']);
    expect([rate(5e10), rate(0), rate(null), percent(0.5), percent(NaN)]).toEqual(['50 GB/s', '-', '-', '50.0 %', '-']);
    expect([1, 3, 110, 2000].map(roundStep)).toEqual([1, 5, 200, 2000]);
  });
  it('shorten names by what tells them apart', () => {
    expect(shortNames(['0', '1'], 7)).toEqual(['0', '1']);
    expect(shortNames(['block of 0', 'block of 16', 'block of 3200'], 7)).toEqual(['0', '16', '3200']);
    expect(shortNames(['box0.gpu0', 'box1.gpu0', 'box1.nvswitch'], 7)).toEqual(['gpu0', 'gpu0', 'box1.n\u2026']);
    expect(shortNames(['the same', 'the same'], 4)).toEqual(['same', 'same']);
    expect(shortNames(['rank 1', 'rank 10000000'], 4)).toEqual(['1', '100\u2026']);
  });
  it('tell times apart that differ, and only then need more digits', () => {
    expect(instants(1_324_001_234_000, 1_324_013_567_000)).toEqual(['1.324001 s', '1.324014 s']);
    expect(instants(1_324_001_234_000, 1_324_001_234_001)).toEqual(['1.324001234 s', '1.324001234001 s']);
    expect(instants(8000, 9900)).toEqual(['8 ns', '9.9 ns']);
    expect(instants(0, 2e12, 2e12)).toEqual(['0 ps', '2 s', '2 s']);
    expect(instants(7e12, 7e12)).toEqual(['7 s', '7 s']);
    for (const gap of [1, 37, 1e3, 5e6, 1e9]) {
      const [from, to] = instants(86_400_123_456_789_012, 86_400_123_456_789_012 + gap * 16);
      expect(from).not.toBe(to);
    }
    expect([0, 1, 2, 3].map((i) => instant(2e12 + i * 5e6, 5e6))).toEqual(['2 s', '2.000005 s', '2.00001 s', '2.000015 s']);
  });
  it('are cut off where they do not fit, and left out where nothing of them would be told', () => {
    const widthOf = (text: string): number => 6 * text.length;
    expect(fitted('all-reduce', 60, widthOf)).toBe('all-reduce');
    expect(fitted('all-reduce', 59, widthOf)).toBe('all-redu\u2026');
    expect(fitted('waits for its turn', 6 * 7, widthOf)).toBe('waits\u2026');
    expect(fitted('all-reduce', 24, widthOf)).toBe('all\u2026');
    expect(fitted('all-reduce', 23, widthOf)).toBe('');
    expect(fitted('', 0, widthOf)).toBe('');
  });
});

describe('a picture that is moved', () => {
  it('keeps what stays inside and has nothing where columns came in', () => {
    const moved = (shift: number) => {
      const cells = new Float32Array([1, 2, 3, 4, 5, 6]);
      moveColumns(cells, 3, 2, shift);
      return [...cells];
    };
    expect(moved(0)).toEqual([1, 2, 3, 4, 5, 6]);
    expect(moved(1)).toEqual([2, 3, 0, 5, 6, 0]);
    expect(moved(-2)).toEqual([0, 0, 1, 0, 0, 4]);
  });
});

describe('text on a colour', () => {
  it('is dark where white would be hard to read', () => {
    expect(['#c2c8cf', '#ffffff', '#e6b800'].map(isLight)).toEqual([true, true, true]);
    expect(['#0072b2', '#000000', '#7a1f1f'].map(isLight)).toEqual([false, false, false]);
  });
});
