// The data of the page: docs/formats/explorer-data.md. Read from the element #tutti-data, and checked so far that
// the views may index arrays by what other arrays say.

export interface Grid { dims: number[]; wraps: boolean; at?: number[] } // at: the position of each node, where some are gone
export interface Cut { count: number; shards_out: string; capacity_out: string; inside: number[] }
export interface Exact { exact: string; value: number | null }
export interface Bounds {
  steps: number; latency_ps: number; least_alpha_ps: number; seconds_per_byte: Exact; tb: Exact; reason: string; cut: Cut | null;
}
export interface Links { tail: number[]; head: number[]; bandwidth: number[]; alpha_ps: number[] }
export interface Groups {
  names: string[]; nodes: number[]; grid: Grid | null; tail: number[]; head: number[]; links: number[]; bandwidth: number[];
}
export interface Network {
  name: string; ranks: number; nodes: number; links_total: number; host_limits: number;
  names?: string[] | null; grid?: Grid | null; links?: Links; groups?: Groups;
}
export interface Transfers { shard: number[]; link: number[]; begin: number[]; end: number[]; step: number[]; reduces?: number[] }
export interface Messages {
  link: number[]; step: number[]; start_ps: number[]; free_ps: number[]; arrive_ps: number[]; bytes: number[]; first: number[];
}
export interface Simulation {
  link_model: string; mode: string; time_ps: number; algbw: number | null; busbw: number | null; messages: number;
  max_in_flight: number; use: { busy_ps: number[]; bytes: number[] };
}
export interface Fault { kind: string; message: string; transfer: number }
export interface Schedule {
  network: number; label: string; collective: string; algorithm: string; kind: 'step' | 'timed'; steps: number; shards: number;
  units_per_shard: number; transfers_total: number; size_bytes: number; verified: boolean | null; faults_total: number;
  faults: Fault[]; note: string; bounds?: Bounds; bound_ps?: number; simulation?: Simulation; transfers?: Transfers;
  messages?: Messages; omitted?: string;
}
export interface Limit { network: number; collective: string; bounds: Bounds }
export interface Curve { name: string; size_bytes: number[]; time_ps: number[] }
export interface Comparison {
  network: number; collective: string; how: string; bus_factor: number | null;
  rows: { algorithm: string; size_bytes: number; time_ps: number; analytic_ps: number; bound_ps: number; steps: number }[];
  curves: Curve[]; bound: Curve; best: { algorithm: string; from_bytes: number }[]; missing: { algorithm: string; reason: string }[];
}
export interface Designs {
  ranks: number; degree: number; collective: string; one_way: number; tl_bound: number; tb_bound: Exact; bound_ps?: number; best: number;
  rows: { recipe: string; algorithm: string; network: number; tl: number; tb: Exact; diameter: number; bidirectional: number; reasons: string[]; time_ps?: number; f_lower?: number; f_upper?: number }[];
}
export interface Flow { network: number; f: Exact; f_upper: Exact; proven: number; min_bandwidth: number; demand: number; load: number[]; length: number[] }
export interface TrainingRow {
  algorithm: string; iteration_ps: number; forward_ps: number; backward_ps: number; tensor_ps: number; all_to_all_ps: number; exposed_ps: number; gradients_ps: number;
  events: { activity: number[]; start_ps: number[]; end_ps: number[]; name: string[] };
}
export interface Training { network: number; workload: string; how: string; omitted: string; rows: TrainingRow[] }
export interface Operations {
  title: string; how: string; omitted: string; lanes: string[];
  events: { lane: number[]; sequence: number[]; waits: number[]; bytes: number[]; start_ps: number[]; end_ps: number[]; name: string[] };
}
export interface PageData {
  format: string; version: number; command: string; networks: Network[]; limits: Limit[]; schedules: Schedule[]; comparison?: Comparison; designs?: Designs; flows?: Flow[]; training?: Training; operations?: Operations;
}

export class DataError extends Error {}

function need(condition: boolean, message: string): asserts condition {
  if (!condition) throw new DataError(message);
}

function isIndexColumn(column: unknown, length: number, below: number): boolean {
  return Array.isArray(column) && column.length === length
    && column.every((value) => Number.isInteger(value) && value >= 0 && value < below);
}

function isNumberColumn(column: unknown, length: number): boolean {
  return Array.isArray(column) && column.length === length && column.every((value) => Number.isFinite(value));
}

function checkEnds(ends: { tail: number[]; head: number[]; bandwidth: number[] }, nodes: number, where: string): void {
  need(Array.isArray(ends.tail), `${where}: no links`);
  const count = ends.tail.length;
  need(isIndexColumn(ends.tail, count, nodes) && isIndexColumn(ends.head, count, nodes), `${where}: a link has no such end`);
  need(isNumberColumn(ends.bandwidth, count), `${where}: a link has no bandwidth`);
}

function checkNetwork(network: Network, index: number): void {
  const where = `network ${index}`;
  need(Number.isInteger(network.nodes) && network.nodes >= 1 && network.ranks >= 1 && network.ranks <= network.nodes,
    `${where}: it has no nodes`);
  if (network.groups) {
    const { groups } = network;
    need(Array.isArray(groups.names) && isNumberColumn(groups.nodes, groups.names.length), `${where}: its groups are damaged`);
    checkEnds(groups, groups.names.length, where);
    need(isNumberColumn(groups.links, groups.tail.length), `${where}: its groups are damaged`);
    return;
  }
  need(network.links !== undefined, `${where}: neither links nor groups`);
  checkEnds(network.links, network.nodes, where);
  need(isNumberColumn(network.links.alpha_ps, network.links.tail.length), `${where}: a link has no alpha`);
  need(network.names == null || network.names.length === network.nodes, `${where}: not every node has a name`);
  const { grid } = network;
  if (grid?.at) need(isIndexColumn(grid.at, network.nodes, grid.dims.reduce((a, b) => a * b, 1)), `${where}: a node has no place on its grid`);
}

function checkSchedule(schedule: Schedule, index: number, networks: Network[]): void {
  const where = `schedule ${index}`;
  const network = networks[schedule.network];
  need(network !== undefined, `${where}: its network is missing`);
  const ends = network.groups ?? network.links;
  const links = ends === undefined ? 0 : ends.tail.length;
  if (schedule.simulation) {
    const { use } = schedule.simulation;
    need(isNumberColumn(use?.busy_ps, links) && isNumberColumn(use.bytes, links), `${where}: the use of links is damaged`);
  }
  if (schedule.transfers) {
    const t = schedule.transfers;
    need(isIndexColumn(t.link, schedule.transfers_total, links), `${where}: a transfer goes over no link`);
    need(isIndexColumn(t.shard, t.link.length, schedule.shards) && isIndexColumn(t.step, t.link.length, Math.max(1, schedule.steps))
      && isNumberColumn(t.begin, t.link.length) && isNumberColumn(t.end, t.link.length), `${where}: its transfers are damaged`);
  }
  if (schedule.messages) {
    const m = schedule.messages;
    need(Array.isArray(m.link) && isIndexColumn(m.link, m.link.length, links), `${where}: a message goes over no link`);
    for (const column of [m.step, m.start_ps, m.free_ps, m.arrive_ps, m.bytes, m.first])
      need(isNumberColumn(column, m.link.length), `${where}: its messages are damaged`);
  }
}

function checkComparison(comparison: Comparison, networks: Network[]): void {
  const where = 'comparison';
  need(networks[comparison.network] !== undefined, `${where}: its network is missing`);
  need(Array.isArray(comparison.rows) && Array.isArray(comparison.curves) && Array.isArray(comparison.best) && Array.isArray(comparison.missing) && comparison.bound !== undefined, `${where}: parts of it are missing`);
  for (const curve of [...comparison.curves, comparison.bound])
    need(Array.isArray(curve.size_bytes) && isNumberColumn(curve.size_bytes, curve.size_bytes.length) && isNumberColumn(curve.time_ps, curve.size_bytes.length), `${where}: a curve is damaged`);
}

function checkFlow(flow: Flow, index: number, networks: Network[]): void {
  const where = `flow ${index}`, network = networks[flow.network];
  need(network !== undefined, `${where}: its network is missing`);
  const links = (network.groups ?? network.links)!.tail.length;
  need(isNumberColumn(flow.load, links) && (flow.length.length === 0 || isNumberColumn(flow.length, links)), `${where}: its loads are damaged`);
}

function checkTraining(training: Training, networks: Network[]): void {
  need(networks[training.network] !== undefined && Array.isArray(training.rows), 'training: its network is missing');
  training.rows.forEach(({ events }, i) => {
    const count = Array.isArray(events?.activity) ? events.activity.length : -1;
    need(isIndexColumn(events.activity, count, 4) && isNumberColumn(events.start_ps, count) && isNumberColumn(events.end_ps, count) && events.name?.length === count, `training ${i}: its events are damaged`);
  });
}

function checkOperations(operations: Operations): void {
  const { events, lanes } = operations;
  const count = Array.isArray(events?.lane) ? events.lane.length : -1;
  need(Array.isArray(lanes) && isIndexColumn(events.lane, count, lanes.length) && isIndexColumn(events.waits, count, 2) && events.name?.length === count
    && [events.sequence, events.bytes, events.start_ps, events.end_ps].every((column) => isNumberColumn(column, count)), 'operations: their events are damaged');
}

function checkDesigns(designs: Designs, networks: Network[]): void {
  need(Array.isArray(designs.rows) && designs.rows.length > 0 && designs.tb_bound !== undefined && designs.best < designs.rows.length, 'designs: parts of them are missing');
  designs.rows.forEach((row, i) => need((row.network === -1 || networks[row.network] !== undefined) && row.tb !== undefined && Array.isArray(row.reasons), `design ${i}: its network is missing`));
}

export function checkData(value: unknown): PageData {
  need(typeof value === 'object' && value !== null, 'the data is no object');
  const data = value as PageData;
  need(data.format === 'tutti-explorer', 'the data is not that of an explorer page');
  need(data.version === 1, `the data has version ${String(data.version)}; this page reads version 1`);
  need(Array.isArray(data.networks) && Array.isArray(data.limits) && Array.isArray(data.schedules), 'parts of the data are missing');
  if (data.operations) checkOperations(data.operations);
  else need(data.networks.length > 0, 'the data names no network');
  data.networks.forEach(checkNetwork);
  data.limits.forEach((limit, i) => need(data.networks[limit.network] !== undefined && limit.bounds !== undefined, `limit ${i}: its network is missing`));
  data.schedules.forEach((schedule, i) => checkSchedule(schedule, i, data.networks));
  data.flows?.forEach((flow, i) => checkFlow(flow, i, data.networks));
  if (data.training) checkTraining(data.training, data.networks);
  if (data.designs) checkDesigns(data.designs, data.networks);
  if (data.comparison) checkComparison(data.comparison, data.networks);
  return data;
}

// Base64 of zlib's format to text. `bytes`: how long the text has to be.
export async function unpack(base64: string, bytes: number): Promise<string> {
  let packed: Uint8Array<ArrayBuffer>;
  try {
    const binary = atob(base64.trim());
    packed = new Uint8Array(binary.length);
    for (let i = 0; i < binary.length; ++i) packed[i] = binary.charCodeAt(i);
  } catch {
    throw new DataError('the data is damaged: it is no base64');
  }
  let text: string;
  try {
    text = await new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream('deflate'))).text();
  } catch {
    throw new DataError('the data is cut off or damaged: it does not decompress');
  }
  const length = new Blob([text]).size;
  if (length !== bytes) throw new DataError(`the data is damaged: ${length} bytes where ${bytes} were written`);
  return text;
}

export async function readData(element: HTMLElement | null): Promise<PageData> {
  need(element !== null, 'this page holds no data: it is the empty page of the program, or its end is missing');
  const text = await unpack(element.textContent ?? '', Number(element.dataset['bytes'] ?? '-1'));
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new DataError('the data is damaged: it is no JSON');
  }
  return checkData(value);
}
