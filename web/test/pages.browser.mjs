// Opens pages made by the built command in a browser, clicks, reads back what is shown and compares it with the data.
//   TUTTI=build/release/bin/tutti CHROMIUM=/usr/bin/chromium node web/test/pages.browser.mjs [FOLDER for pictures]
// Ends with 1 where something is not as it should be.
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { deflateSync } from 'node:zlib';
import { join } from 'node:path';
import { chromium } from 'playwright-core';

const tutti = process.env.TUTTI ?? 'build/release/bin/tutti';
const folder = mkdtempSync(join(tmpdir(), 'tutti-pages-'));
const pictures = process.argv[2];
if (pictures) mkdirSync(pictures, { recursive: true });
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox'], timeout: 180_000 });
const file = (name) => join(folder, name);
const make = (name, ...command) => {
  execFileSync(tutti, [...command, '--html', file(name)], { stdio: ['ignore', 'ignore', 'inherit'] });
  return file(name);
};

async function open(path, state = 'shown') {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
  page.setDefaultTimeout(Number(process.env.PAGE_TIMEOUT ?? 120_000));
  const requests = [], faults = [];
  page.on('request', (request) => { if (!/^(file|data|blob):/.test(request.url())) requests.push(request.url()); });
  page.on('pageerror', (error) => faults.push(error.message));
  page.on('dialog', (dialog) => { faults.push(`dialog ${dialog.message()}`); void dialog.dismiss(); });
  await page.goto(`file://${path}`);
  if (state !== null) await page.waitForFunction((wanted) => document.documentElement.dataset.state === wanted, state, { timeout: 120_000 });
  return { page, done: async () => {
    assert.deepEqual(requests, [], 'the page asked for something from outside');
    assert.deepEqual(faults, []);
    await page.close();
  } };
}
const details = (page) => page.locator('#details').innerText();
const shot = async (page, name) => { if (pictures) await page.screenshot({ path: join(pictures, `${name}.png`), fullPage: true }); };
const click = async (page, place) => { const [x, y] = place; await page.mouse.click(x, y); };

// A page of the given data, with the program of pages that the command makes.
const withData = (name, data) => {
  const json = Buffer.from(JSON.stringify({ format: 'tutti-explorer', version: 1, networks: [], limits: [], schedules: [], ...data }));
  const packed = `<script type="text/plain" id="tutti-data" data-bytes="${json.length}">${deflateSync(json).toString('base64')}</script>`;
  writeFileSync(file(name), readFileSync(new URL('../dist/explorer.html', import.meta.url), 'utf8').replace('<!--tutti-data-->', packed));
  return file(name);
};
// The texts that a view draws when it draws itself again: what, where, how wide, and the most room that it was squeezed into.
const textsDrawn = (page, view) => page.evaluate(async (name) => {
  const drawn = [], { prototype } = CanvasRenderingContext2D, fill = prototype.fillText;
  prototype.fillText = function (text, x, y, ...most) {
    drawn.push({ text, x, y, width: this.measureText(text).width, most: most[0] ?? Infinity });
    fill.call(this, text, x, y, ...most);
  };
  const shown = window.tutti[name];
  (shown.refresh ?? shown.draw).call(shown);
  for (let i = 0; i < 2; ++i) await new Promise(requestAnimationFrame);
  prototype.fillText = fill;
  return drawn;
}, view);
const rowIsSeen = (page, table) => page.evaluate((name) => {
  const rows = document.querySelectorAll(`table[aria-label="${name}"] tr[aria-selected="true"]`), [row] = rows;
  if (rows.length !== 1) return false;
  const box = row.closest('.scroll').getBoundingClientRect(), at = row.getBoundingClientRect();
  return at.top >= box.top && at.bottom <= box.bottom + 1;
}, table);

const tests = {
  async 'one choice is shown in all views'() {
    const { page, done } = await open(make('torus.html', 'synth', 'torus(4,4)', '-c', 'all-gather', '-a', 'bfb', '--size', '1MiB'));
    assert.match(await page.locator('h1').innerText(), /^all-gather on torus\(4,4\) by bfb$/);
    assert.match(await page.locator('header').innerText(), /proven correct/);
    const link = await page.evaluate(() => window.tutti.data.schedules[0].messages.link[0]);
    await click(page, await page.evaluate((at) => window.tutti.network.linkAt(at), link));
    assert.match(await details(page), new RegExp(`^Link ${link}: `));
    const chosen = await page.evaluate(() => window.tutti.store.selection);
    assert.deepEqual(chosen, { kind: 'link', link });
    // Its bytes and busy time, as the data says.
    const busy = await page.evaluate((at) => { const s = window.tutti.data.schedules[0].simulation; return ((100 * s.use.busy_ps[at]) / s.time_ps).toFixed(1); }, link);
    assert.ok((await details(page)).includes(`Busy ${busy} %`), await details(page));
    await shot(page, 'torus-link');
    // A node by click, a message in the timeline, and its link in the table.
    await click(page, await page.evaluate(() => window.tutti.network.nodeAt(5)));
    assert.match(await details(page), /^Rank 5: 4 links out/);
    await page.getByRole('img', { name: /^Timeline of/ }).scrollIntoViewIfNeeded();
    await click(page, await page.evaluate(() => window.tutti.timeline.messageAt(9)));
    const message = await page.evaluate(() => { const m = window.tutti.data.schedules[0].messages; return { link: m.link[9], step: m.step[9], name: window.tutti.data.networks[0].links.tail[m.link[9]] + ' -> ' + window.tutti.data.networks[0].links.head[m.link[9]] }; });
    assert.ok((await details(page)).startsWith(`Message 9 over ${message.name}, step ${message.step + 1}`), await details(page));
    const row = page.locator('table[aria-label="Busiest links"] tr[aria-selected="true"]');
    assert.ok((await row.innerText()).startsWith(message.name));
    assert.equal(await page.locator('table[aria-label="Steps"] tr[aria-selected="true"] td').first().innerText(), String(message.step + 1));
    // From the heat map.
    await page.getByRole('img', { name: /^Heat map/ }).scrollIntoViewIfNeeded();
    await click(page, await page.evaluate(() => window.tutti.heat.linkAt(7)));
    assert.match(await details(page), /^Link 7: /);
    await done();
  },

  async 'the steps, their sums and the bound are those of the data'() {
    const { page, done } = await open(file('torus.html'));
    const rows = await page.locator('table[aria-label="Steps"] tbody tr').allInnerTexts();
    const steps = await page.evaluate(() => { const m = window.tutti.data.schedules[0].messages; return m.step.reduce((n, s) => ((n[s] = (n[s] ?? 0) + 1), n), []); });
    assert.equal(rows.length, steps.length);
    rows.forEach((text, i) => assert.equal(text.split('\t')[3], String(steps[i])));
    await page.locator('table[aria-label="Steps"] tbody tr').nth(1).click();
    assert.match(await details(page), new RegExp(`^Step 2: ${steps[1]} messages`));
    assert.match(await page.getByRole('region', { name: 'Bound and time' }).innerText(), /this one reaches \d+\.\d % of it/);
    await done();
  },

  async 'a shard shows its way and who holds it'() {
    const { page, done } = await open(file('torus.html'));
    await page.getByLabel('Kind of thing to choose').selectOption('shard');
    await page.getByLabel('Number of the thing to choose').fill('3');
    await page.getByRole('button', { name: 'Choose', exact: true }).click();
    const transfers = await page.evaluate(() => window.tutti.data.schedules[0].transfers.shard.filter((s) => s === 3).length);
    assert.match(await details(page), new RegExp(`^Shard 3: ${transfers} transfers`));
    await page.evaluate(() => window.tutti.setTime(window.tutti.data.schedules[0].simulation.time_ps * 0.55));
    await shot(page, 'torus-shard');
    await page.getByLabel('Number of the thing to choose').fill('99');
    await page.getByRole('button', { name: 'Choose', exact: true }).click();
    assert.match(await details(page), /There is no shard 99: they are 0 to 15/);
    await done();
  },

  async 'the timeline goes from the whole to one message, by link and by sender'() {
    const { page, done } = await open(file('torus.html'));
    const { links, messages } = await page.evaluate(() => ({ links: window.tutti.data.networks[0].links, messages: window.tutti.data.schedules[0].messages }));
    const rows = async () => (await textsDrawn(page, 'timeline')).filter((one) => one.x < 92 && one.y > 22).map((one) => one.text);
    const byLink = await rows(), names = links.tail.map((tail, i) => `${tail} -> ${links.head[i]}`);
    assert.ok(byLink.length >= 8 && byLink.every((name) => names.includes(name)) && byLink[0] === names[Math.min(...messages.link)], String(byLink));
    await page.getByLabel('Rows of the timeline').selectOption('rank');
    assert.deepEqual(await rows(), [...new Set(links.tail)].map(String));
    await page.getByLabel('Rows of the timeline').selectOption('link');
    // One message as wide as a quarter of the view, with its step on it; a click there chooses it.
    const chosen = messages.link.length - 5;
    await page.evaluate((at) => { const { timeline, data } = window.tutti, m = data.schedules[0].messages; timeline.zoomBy((timeline.perPixel * 300) / (m.free_ps[at] - m.start_ps[at])); timeline.taller(4); timeline.messageAt(at); }, chosen);
    assert.ok((await textsDrawn(page, 'timeline')).some((one) => one.text === `step ${messages.step[chosen] + 1}` && one.x > 92));
    await page.getByRole('img', { name: /^Timeline of/ }).scrollIntoViewIfNeeded();
    await click(page, await page.evaluate((at) => window.tutti.timeline.messageAt(at), chosen));
    assert.ok((await details(page)).startsWith(`Message ${chosen} over`), await details(page));
    await page.getByRole('button', { name: 'Show the whole timeline' }).click();
    assert.deepEqual(await rows(), byLink);
    await done();
  },

  async 'names of rows are whole, and tell rows apart'() {
    const { page, done } = await open(make('boxes-rows.html', 'synth', 'dgx_h100(2)', '-c', 'all-gather', '-a', 'forest'));
    const { labels, names } = await page.evaluate(() => { const { names: of, links } = window.tutti.data.networks[0]; return { labels: window.tutti.timeline.labels, names: links.tail.map((tail, i) => `${of[tail]} -> ${of[links.head[i]]}`) }; });
    const rows = (await textsDrawn(page, 'timeline')).filter((one) => one.x < labels && one.y > 22);
    assert.ok(rows.length >= 8 && rows.every((one) => names.includes(one.text) && one.width <= one.x), JSON.stringify(rows));
    assert.equal(new Set(rows.map((one) => one.text)).size, rows.length);
    await shot(page, 'boxes-rows');
    await done();
  },

  async 'the clock plays, pauses and is set by keys'() {
    const { page, done } = await open(file('torus.html'));
    await page.getByLabel('Speed of playing').selectOption('0.1'); // not at its end before a busy machine sees it play
    await page.getByRole('button', { name: 'Play the schedule' }).click();
    await page.waitForFunction(() => window.tutti.time() > 0);
    await page.getByRole('button', { name: 'Pause the schedule' }).click();
    const now = await page.evaluate(() => window.tutti.time());
    assert.ok(now > 0);
    await page.getByLabel('Time in the schedule').fill('500');
    const half = await page.evaluate(() => window.tutti.time() / window.tutti.data.schedules[0].simulation.time_ps);
    assert.ok(Math.abs(half - 0.5) < 0.01);
    await done();
  },

  async 'keys alone reach and choose everything; controls have names'() {
    const { page, done } = await open(file('torus.html'));
    await page.getByRole('img', { name: /^Network torus/ }).focus();
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('ArrowRight');
    assert.match(await details(page), /^Rank 1: /);
    await page.getByRole('img', { name: /^Timeline of/ }).focus();
    await page.keyboard.press('ArrowRight');
    assert.match(await details(page), /^Message 0 /);
    await page.keyboard.press('ArrowDown');
    assert.match(await details(page), /^Message \d+ /);
    await page.getByRole('img', { name: /^Heat map/ }).focus();
    await page.keyboard.press('ArrowRight');
    assert.match(await details(page), /^Link 0: /);
    await page.keyboard.press('ArrowLeft');
    assert.match(await details(page), /^Link 63: /);
    await page.keyboard.press('Escape');
    assert.match(await details(page), /^Nothing is chosen/);
    const nameless = await page.evaluate(() => [...document.querySelectorAll('button, select, input, canvas')].filter((e) => !(e.getAttribute('aria-label') || e.textContent.trim())).length);
    assert.equal(nameless, 0);
    await done();
  },

  async 'the chain that the time hangs on leads to the end, in all views'() {
    const { page, done } = await open(make('waits.html', 'synth', 'without(torus(4,4),links=2,seed=1)', '-c', 'all-reduce', '-a', 'bfb', '--size', '64MiB'));
    const data = await page.evaluate(() => { const s = window.tutti.data.schedules[0]; return { messages: s.messages, transfers: s.transfers, links: window.tutti.data.networks[0].links, time: s.simulation.time_ps }; });
    const { messages: m, links, time } = data;
    const rows = (await page.locator('table[aria-label="The chain that the time hangs on"] tbody tr').allInnerTexts()).map((row) => row.split('\t'));
    const chain = rows.map((row) => Number(row[0]));
    assert.equal(m.arrive_ps[chain.at(-1)], Math.max(...m.arrive_ps));
    assert.equal(Math.max(...m.arrive_ps), time);
    assert.equal(rows[0][4], 'nothing');
    // With steps behind barriers each begins as the one before it has arrived: on its link, in the step before, or with what it carries.
    for (let i = 1; i < chain.length; ++i) {
      assert.equal(m.start_ps[chain[i]], m.arrive_ps[chain[i - 1]], `message ${chain[i]}`);
      if (rows[i][4] === 'what it carries') assert.equal(links.head[m.link[chain[i - 1]]], links.tail[m.link[chain[i]]]);
      if (rows[i][4] === 'its link') assert.equal(m.link[chain[i - 1]], m.link[chain[i]]);
    }
    assert.ok((await page.locator('#waits-words').innerText()).includes(`a chain of ${chain.length} messages over ${new Set(chain.map((i) => m.link[i])).size} links`));
    assert.match(await page.locator('#waits-words').innerText(), /100\.0 % of the time a message of it is on its way/);
    await page.getByRole('button', { name: 'Show the chain that the time hangs on in all views' }).click();
    assert.deepEqual(await page.evaluate(() => window.tutti.store.selection), { kind: 'chain', messages: chain });
    assert.match(await details(page), new RegExp(`^A chain of ${chain.length} messages that ends at`));
    await shot(page, 'waits');
    await page.locator('table[aria-label="The chain that the time hangs on"] tbody tr').nth(1).press('Enter');
    assert.ok((await details(page)).includes(`Waited for ${rows[1][4]}: message ${chain[0]}`), await details(page));
    // The ranks that wait: as long as the links of the table's first row stand free before its messages.
    const [waiter, other, , count] = (await page.locator('table[aria-label="Ranks that wait for each other"] tbody tr').first().innerText()).split('\t');
    const waits = await page.evaluate(([a, b]) => { const { data: d, waits: of } = window.tutti, l = d.networks[0].links, s = d.schedules[0].messages; return s.link.filter((link, i) => { const cause = of().causeOf(i); return cause.idle > 0 && l.tail[link] === a && l.tail[s.link[cause.message]] === b; }).length; }, [Number(waiter), Number(other)]);
    assert.equal(Number(count), waits);
    await done();
  },

  async 'bound against reached by time'() {
    for (const [name, expression, algorithm, ofCut] of [['progress', 'mesh(4,2)', 'bfb', true], ['progress-links', 'torus(4,4)', 'bfb', false]]) {
      const { page, done } = await open(make(`${name}.html`, 'synth', expression, '-c', ofCut ? 'all-gather' : 'all-reduce', '-a', algorithm, '--size', '64MiB'));
      const { progress, messages, links, inside, time } = await page.evaluate(() => { const { data: d, progress: p } = window.tutti, s = d.schedules[0]; return { progress: p, messages: s.messages, links: d.networks[0].links, inside: s.bounds.cut?.inside ?? [], time: s.simulation.time_ps }; });
      const set = new Set(inside), over = (link) => set.size === 0 || (set.has(links.tail[link]) && !set.has(links.head[link]));
      assert.equal(set.size > 0, ofCut, expression);
      const total = messages.link.reduce((sum, link, i) => sum + (over(link) ? messages.bytes[i] : 0), 0);
      const capacity = links.bandwidth.reduce((sum, bandwidth, link) => sum + (over(link) ? bandwidth : 0), 0);
      assert.ok(Math.abs(progress.points.at(-1).y / total - 1) < 1e-9);
      // Nothing is faster than the links, and nothing goes back.
      progress.points.forEach((point, i) => assert.ok(point.y <= capacity * point.x * 1e-12 * (1 + 1e-6) + 1 && (i === 0 || point.y >= progress.points[i - 1].y), `${expression} at ${point.x}`));
      assert.ok((await page.locator('#progress-words').innerText()).includes(`used ${((100 * total) / (capacity * time * 1e-12)).toFixed(1)} %`));
      await shot(page, name);
      await done();
    }
  },

  async 'broken tori keep their grid'() {
    for (const [name, expression, nodes] of [['broken-links', 'without(torus(4,4),links=3,seed=2)', 16], ['broken-nodes', 'without(torus(5,5),nodes=3,seed=1)', 22]]) {
      const { page, done } = await open(make(`${name}.html`, 'topo', 'show', expression));
      const { kind, at, names } = await page.evaluate(() => ({ kind: window.tutti.network.layout.kind, at: window.tutti.data.networks[0].grid.at, names: window.tutti.data.networks[0].names }));
      assert.equal(kind, 'grid', expression);
      assert.equal(at.length, nodes);
      assert.deepEqual(at, names === null ? at.map((_, i) => i) : names.map(Number));
      await shot(page, name);
      await done();
    }
  },

  async 'operations of a communicator: who came last'() {
    // As `tutti service trace` writes them; tests/cli/service_test.py makes a real one.
    const operations = { title: 'communicator c-1', how: 'by hand', omitted: '', lanes: ['rank 0', 'rank 1'], events: { lane: [0, 0, 1, 0, 1], sequence: [0, 0, 0, 1, 1], waits: [1, 0, 0, 0, 0], bytes: [64, 64, 64, 128, 128],
      start_ps: [0, 1000, 3000, 9000, 8000], end_ps: [1000, 5000, 5000, 9900, 9900], name: ['waits for its turn', 'all-reduce', 'all-reduce', '<b>bold</b>', '<b>bold</b>'] } };
    const text = readFileSync(file('torus.html'), 'utf8'), json = Buffer.from(JSON.stringify({ format: 'tutti-explorer', version: 1, command: 'service trace', networks: [], limits: [], schedules: [], operations }));
    writeFileSync(file('operations.html'), text.replace(/id="tutti-data" data-bytes="\d+">[^<]*</, `id="tutti-data" data-bytes="${json.length}">${deflateSync(json).toString('base64')}<`));
    const { page, done } = await open(file('operations.html'));
    assert.equal(await page.locator('h1').innerText(), 'communicator c-1');
    const rows = (await page.locator('table[aria-label="Operations"] tbody tr').allInnerTexts()).map((row) => row.split('\t'));
    assert.deepEqual(rows.map((row) => [row[0], row[5], row[6], row[7]]), [['all-reduce', '3 ns', 'rank 1', '5 ns'], ['<b>bold</b>', '1 ns', 'rank 0', '1.9 ns']]);
    await page.locator('table[aria-label="Operations"] tbody tr').nth(1).press('Enter');
    assert.match(await page.locator('#event').innerText(), /^rank 1: <b>bold<\/b>, number 1, 128 B, from 8 ns to 9\.9 ns/);
    await shot(page, 'operations');
    await done();
  },

  async 'names that do not fit are cut off or left out, and times that differ are told apart'() {
    // On an axis of 1 ms some 1,100 pixels wide: bars of half of it, of 60 pixels, of 10, and one of five picoseconds.
    const events = { lane: [0, 0, 0, 1, 1, 1, 1], sequence: [0, 1, 2, 3, 4, 5, 6], waits: [0, 0, 0, 0, 0, 0, 0], bytes: [64, 64, 64, 64, 64, 64, 64], start_ps: [0, 5e8, 5.55e8, 700_001_234, 9.99e8, 2e8, 2.3e8], end_ps: [4.99e8, 5.55e8, 5.64e8, 700_001_239, 1e9, 4e8, 4e8],
      name: ['all-reduce', 'reduce-scatter', 'broadcast', 'barrier', 'gather', 'under the next', 'all-to-all'] };
    const { page, done } = await open(withData('fits.html', { command: 'service trace', operations: { title: 'communicator c-2', how: 'by hand', omitted: '', lanes: ['rank 0', 'rank 1'], events } }));
    const texts = await textsDrawn(page, 'timeline');
    for (const one of texts) assert.ok(one.most >= one.width, `${one.text} is squeezed from ${one.width} to ${one.most} pixels`);
    const names = texts.map((one) => one.text);
    assert.ok(names.includes('all-reduce'), String(names));
    assert.ok(names.some((name) => /^reduce.*\u2026$/.test(name)), String(names));
    assert.ok(!names.some((name) => /^(bro|bar|gat)/.test(name)), String(names));
    // Of two that overlap the one below has what is left of it.
    const under = texts.find((one) => one.text.startsWith('under')), over = texts.find((one) => one.text === 'all-to-all');
    assert.ok(over !== undefined && (under === undefined || under.x + under.width <= over.x), JSON.stringify(texts));
    await page.locator('table[aria-label="Operations"] tbody tr').nth(3).press('Enter');
    assert.match(await page.locator('#event').innerText(), /from 700\.001234 us to 700\.001239 us, 5 ps\.$/);
    // Far in, the axis tells its ticks apart, too, and a bar that begins left of it keeps its name.
    await page.evaluate(() => { for (let i = 0; i < 12; ++i) window.tutti.timeline.zoomBy(1.6, 132 + 200); });
    const near = await textsDrawn(page, 'timeline'), ticks = near.filter((one) => / [mun]?s$/.test(one.text) && one.y < 22).map((one) => one.text);
    assert.ok(ticks.length >= 3 && new Set(ticks).size === ticks.length, String(ticks));
    assert.ok(near.some((one) => one.text === 'all-reduce' && one.x >= 132), JSON.stringify(near));
    await done();
  },

  async 'a row that was chosen elsewhere is brought into its table'() {
    const count = 200, each = (of) => Array.from({ length: count }, (_, i) => of(i));
    const events = { lane: each((i) => i % 2), sequence: each((i) => i), waits: each(() => 0), bytes: each(() => 8), start_ps: each((i) => 1000 * i), end_ps: each((i) => 1000 * i + 900), name: each(() => 'all-reduce') };
    const operations = await open(withData('many.html', { command: 'service trace', operations: { title: 'communicator c-3', how: 'by hand', omitted: '', lanes: ['rank 0', 'rank 1'], events } }));
    await operations.page.evaluate(() => window.tutti.select({ kind: 'message', message: 150 }));
    assert.ok(await rowIsSeen(operations.page, 'Operations'));
    await operations.done();
    const { page, done } = await open(file('torus.html'));
    for (const link of [0, 40, 63]) {
      await page.evaluate((at) => window.tutti.select({ kind: 'link', link: at }), link);
      assert.ok(await rowIsSeen(page, 'Busiest links'), `link ${link}`);
    }
    await done();
  },

  async 'limits draw their cut and say why'() {
    const { page, done } = await open(make('cut.html', 'topo', 'show', 'mesh(4,2)'));
    const limits = await page.evaluate(() => window.tutti.data.limits.map((l) => [l.collective, l.bounds.reason]));
    const rows = await page.locator('table[aria-label="Limits of each collective"] tbody tr').allInnerTexts();
    assert.deepEqual(rows.map((row) => [row.split('\t')[0], row.split('\t')[4]]), limits);
    const cut = await page.evaluate(() => { const d = window.tutti.data, l = d.limits.find((x) => x.bounds.cut && x.bounds.cut.inside.length > 0), inside = new Set(l.bounds.cut.inside); return { reason: l.bounds.reason, links: d.networks[0].links.tail.map((t, i) => i).filter((i) => inside.has(d.networks[0].links.tail[i]) && !inside.has(d.networks[0].links.head[i])) }; });
    assert.deepEqual(await page.evaluate(() => [...window.tutti.network.linksOfCut]), cut.links);
    assert.ok((await page.locator('.cut-words').innerText()).includes(cut.reason));
    await shot(page, 'cut');
    // Another cut of as many nodes is drawn in place of it: red is on its links, and no more on those of the first.
    const reds = await page.evaluate(async () => {
      const { network } = window.tutti, canvas = document.querySelector('canvas.network'), box = canvas.getBoundingClientRect();
      const red = (link) => {
        const [x, y] = network.linkAt(link), scale = canvas.width / canvas.clientWidth;
        const { data } = canvas.getContext('2d').getImageData(Math.round((x - box.left - 1) * scale) - 2, Math.round((y - box.top - 1) * scale) - 2, 5, 5);
        return data.some((_, i) => i % 4 === 0 && data[i] > 180 && data[i + 1] < 60 && data[i + 3] > 200);
      };
      const seen = [];
      for (const inside of [[0], [7], [0]]) {
        network.setCut(inside);
        const links = [...network.linksOfCut];
        for (let i = 0; i < 2; ++i) await new Promise(requestAnimationFrame);
        seen.push({ links, red: window.tutti.data.networks[0].links.tail.flatMap((_, link) => (red(link) ? [link] : [])) });
      }
      return seen;
    });
    for (const { links, red } of reds) assert.ok(links.length > 0 && links.every((link) => red.includes(link)) && red.length <= 2 * links.length, JSON.stringify(reds));
    await page.getByRole('button', { name: 'Draw the bottleneck cut in red' }).click();
    assert.equal(await page.evaluate(() => window.tutti.network.linksOfCut.size), 0);
    await done();
  },

  async 'pages are small'() {
    const program = readFileSync(new URL('../dist/explorer.html', import.meta.url)).length;
    const page = readFileSync(make('dgx1.html', 'synth', 'dgx1', '-c', 'all-reduce', '-a', 'forest')).length;
    console.log(`    program ${program} bytes, page of synth dgx1 ${page} bytes`);
    assert.ok(program <= 2_000_000 && page < 400_000);
  },

  async 'layouts follow the structure'() {
    for (const [name, expression, kind] of [['torus3d', 'torus(3,3,3)', 'grid'], ['ring', 'ring(10)', 'ring'], ['boxes', 'dgx_h100(2)', 'boxes'], ['clos', 'fat_tree(4)', 'layers'], ['force', 'genkautz(3,24)', 'force'], ['dgx1', 'dgx1', 'ring']]) {
      const { page, done } = await open(make(`${name}.html`, 'topo', 'show', expression));
      assert.equal(await page.evaluate(() => window.tutti.network.layout.kind), kind, expression);
      if (name === 'boxes') {
        const names = (await textsDrawn(page, 'network')).map((one) => one.text);
        for (const part of ['box0.nvswitch', 'box1.nvswitch', 'rail0', 'gpu7']) assert.ok(names.includes(part), `${part} of ${names}`);
      }
      await shot(page, `layout-${name}`);
      await done();
    }
  },

  async 'links around a large torus stay beside their row'() {
    const { page, done } = await open(make('bows.html', 'topo', 'show', 'torus(16,16)'));
    const far = await page.evaluate(() => {
      const { network, data } = window.tutti, { tail, head } = data.networks[0].links;
      const around = tail.flatMap((from, link) => (Math.abs(from - head[link]) === 15 ? [link] : [])), row = network.nodeAt(16)[1] - network.nodeAt(0)[1];
      return around.map((link) => Math.abs(network.linkAt(link)[1] - network.nodeAt(tail[link])[1]) / row);
    });
    assert.equal(far.length, 32);
    assert.ok(Math.min(...far) > 0.2 && Math.max(...far) < 0.5, String(far));
    assert.match(await details(page), /A click on a node or a link chooses it/);
    await shot(page, 'bows');
    await done();
  },

  async 'what is wrong with a schedule stands above it'() {
    const whole = file('ring.json');
    execFileSync(tutti, ['synth', 'ring(4)', '-c', 'all-gather', '-a', 'bfb', '-o', whole], { stdio: 'ignore' });
    const made = JSON.parse(readFileSync(whole, 'utf8'));
    made.transfers.push(made.transfers.at(-1));
    writeFileSync(file('broken.json'), JSON.stringify(made));
    assert.equal(spawnSync(tutti, ['verify', file('broken.json'), '--html', file('broken.html')]).status, 1);
    const { page, done } = await open(file('broken.html'));
    assert.match(await page.locator('header').innerText(), /NOT correct: 1 violation/);
    await page.getByRole('button', { name: /^Show the message of/ }).first().click();
    // The violation counts steps from 0, the page from 1, and says so.
    const step = Number(/in step (\d+)/.exec(await page.locator('.fault').first().innerText())[1]);
    assert.match(await details(page), new RegExp(`^Message \\d+ over \\S+ -> \\S+, step ${step + 1}:`));
    assert.match(await page.locator('#page').innerText(), /violations counts steps from 0; everything below counts them from 1/);
    await shot(page, 'broken');
    await done();
  },

  async 'every size of a simulation can be shown'() {
    const schedule = file('t.sched');
    execFileSync(tutti, ['synth', 'torus(3,3)', '-c', 'all-gather', '-a', 'bfb', '-o', schedule], { stdio: 'ignore' });
    const { page, done } = await open(make('sim.html', 'sim', schedule, '--size', '1MiB,64MiB'));
    const first = await page.locator('header').innerText();
    await page.getByLabel('Schedule shown').selectOption({ index: 1 });
    const second = await page.locator('header').innerText();
    assert.match(first, /size 1 MiB/);
    assert.match(second, /size 64 MiB/);
    assert.match(second, /not judged/);
    await done();
  },

  async 'schedules and an execution side by side'() {
    const [ring, bfb, trace] = ['ring.sched', 'bfb.sched', 'bfb.trace.json'].map(file);
    for (const [path, algorithm] of [[ring, 'ring'], [bfb, 'bfb']]) execFileSync(tutti, ['synth', 'torus(3,3)', '-c', 'all-reduce', '-a', algorithm, '-o', path], { stdio: 'ignore' });
    execFileSync(tutti, ['run', bfb, '--size', '4MiB', '-n', '2', '--trace', trace], { stdio: 'ignore' });
    execFileSync(tutti, ['explore', bfb, trace, ring, '-o', file('explore.html')], { stdio: 'ignore' });
    const { page, done } = await open(file('explore.html'));
    assert.equal(await page.locator('h1').innerText(), 'all-reduce on torus(3,3): 3 results side by side');
    const rows = (await page.locator('table[aria-label="Figures of each result"] tbody tr').allInnerTexts()).map((row) => row.split('\t'));
    const times = await page.evaluate(() => window.tutti.data.schedules.map((s) => s.simulation.time_ps));
    assert.deepEqual(rows.map((row) => row[0]), ['bfb, simulated', 'bfb, executed', 'ring']);
    assert.equal(rows[1][1], 'executed');
    rows.forEach((row, i) => assert.equal(row[4], `${(times[i] / Math.min(...times)).toFixed(2)} x`));
    assert.equal(await page.getByRole('region', { name: 'Bound against reached' }).locator('.fill').count(), 4);
    // Executed messages are those of the schedule: each pair in each step, with its bytes.
    const sums = await page.evaluate(() => window.tutti.data.schedules.slice(0, 2).map(({ messages: m }) => Object.fromEntries(m.link.map((l, i) => [`${m.step[i]}/${l}`, Math.round(m.bytes[i] / 64)]).sort())));
    assert.deepEqual(sums[1], sums[0]);
    // Networks beside each other stand at one height, and what belongs together in one line.
    const heights = await page.evaluate(() => [...document.querySelectorAll('.sides canvas')].map((canvas) => canvas.getBoundingClientRect().top));
    assert.ok(heights.length === 3 && new Set(heights).size === 1, String(heights));
    assert.ok(await page.evaluate(() => [...document.querySelectorAll('.together')].every((group) => new Set([...group.children].map((one) => one.getBoundingClientRect().top)).size === 1)));
    // A link chosen in one is chosen in all, and in the table.
    await page.getByRole('img', { name: /^Network of bfb, executed/ }).scrollIntoViewIfNeeded();
    await click(page, await page.evaluate(() => window.tutti.compared.sides[1].network.linkAt(7)));
    assert.deepEqual(await page.evaluate(() => window.tutti.compared.sides.map((side) => side.store.selection.link)), [7, 7, 7]);
    assert.equal(await page.locator('table[aria-label="Links used unlike"] tr[aria-selected="true"]').count(), 1);
    await page.getByLabel('Clock of the results').selectOption('own');
    await page.evaluate(() => window.tutti.setTime(Math.max(...window.tutti.data.schedules.map((s) => s.simulation.time_ps)) / 2));
    assert.deepEqual(await page.evaluate(() => window.tutti.compared.sides.map((side) => Math.round((100 * side.network.time) / side.run.time))), [50, 50, 50]);
    assert.equal(await page.getByLabel('Time shown').innerText(), '50.0 % of each');
    await shot(page, 'explore');
    // To one of them and back.
    await page.locator('table[aria-label="Figures of each result"] tbody tr').nth(1).click();
    assert.match(await page.locator('header').innerText(), /all-reduce on torus\(3,3\) by bfb[\s\S]*executed/);
    await page.getByLabel('Schedule shown').selectOption({ label: 'all side by side' });
    assert.match(await page.locator('h1').innerText(), /3 results side by side/);
    await done();
  },

  async 'results of unlike networks, and wrong ones, stand side by side'() {
    const wrong = file('wrong.json');
    execFileSync(tutti, ['synth', 'ring(4)', '-c', 'all-gather', '-a', 'bfb', '-o', wrong], { stdio: 'ignore' });
    const made = JSON.parse(readFileSync(wrong, 'utf8'));
    made.transfers.pop();
    writeFileSync(wrong, JSON.stringify(made));
    const torus = file('unlike.sched');
    execFileSync(tutti, ['synth', 'torus(80,80)', '-c', 'broadcast', '-a', 'bfb', '-o', torus], { stdio: 'ignore' });
    execFileSync(tutti, ['explore', wrong, torus, '--size', '1MiB', '-o', file('unlike.html')], { stdio: 'ignore' });
    const { page, done } = await open(file('unlike.html'));
    assert.equal(await page.locator('h1').innerText(), '2 collectives on 2 networks: 2 results side by side');
    assert.match(await page.locator('.note').first().innerText(), /bfb \(wrong\.json\) is NOT correct: 1 violation/);
    assert.equal(await page.getByRole('region', { name: /^Network of / }).count(), 2);
    assert.equal(await page.getByRole('region', { name: 'Links used unlike' }).count(), 0);
    await shot(page, 'unlike');
    await done();
  },

  async 'algorithms over sizes cross where the command says'() {
    const answer = JSON.parse(execFileSync(tutti, ['compare', 'torus(4,4)', '-c', 'all-reduce', '--size', '4KiB,1MiB,1GiB', '--html', file('compare.html'), '--json'], { stdio: ['ignore', 'pipe', 'ignore'] }));
    const { page, done } = await open(file('compare.html'));
    const names = [...new Set(answer.rows.filter((row) => !row.error).map((row) => row.algorithm))];
    assert.equal(await page.locator('h1').innerText(), `all-reduce on torus(4,4): ${names.length} algorithms`);
    const labels = await page.locator('svg.chart text.direct').allTextContents();
    assert.deepEqual([...labels].sort(), [...names, 'bound'].sort());
    // The curves go through the rows of the table, and the first of each range is fastest there.
    const curves = await page.evaluate(() => window.tutti.data.comparison.curves);
    for (const row of answer.rows.filter((one) => !one.error)) {
      const curve = curves.find((one) => one.name === row.algorithm);
      assert.ok(curve.time_ps[curve.size_bytes.indexOf(row.size_bytes)] <= row.time_s * 1e12 * 1.0001 + 1, row.algorithm);
    }
    for (const range of answer.best_by_size.slice(1)) {
      const at = (curve) => curve.time_ps[curve.size_bytes.indexOf(range.from_bytes)];
      assert.equal(at(curves.find((curve) => curve.name === range.algorithm)), Math.min(...curves.filter((curve) => curve.size_bytes.includes(range.from_bytes)).map(at)));
    }
    assert.ok((await page.getByRole('region', { name: 'Algorithms over sizes' }).innerText()).includes(`then ${answer.best_by_size.at(-1).algorithm}`));
    await shot(page, 'compare');
    await page.getByRole('button', { name: 'ring', exact: true }).press('Enter');
    const marked = await page.locator('table[aria-label="Sizes asked for"] tr[aria-selected="true"]').allInnerTexts();
    assert.deepEqual(marked.map((row) => row.split('\t').slice(0, 2)), [['ring', '4 KiB'], ['ring', '1 MiB'], ['ring', '1 GiB']]);
    await page.getByLabel('What is drawn over the sizes').selectOption('busbw');
    await shot(page, 'compare-busbw');
    await page.getByLabel('What is drawn over the sizes').selectOption('share');
    assert.match(await page.locator('svg.chart').getAttribute('aria-label'), /^share of the bound of \d+ algorithms/);
    await shot(page, 'compare-share');
    await done();
  },

  async 'each point of a frontier shows its network'() {
    const answer = JSON.parse(execFileSync(tutti, ['design', '-n', '72', '-d', '2', '--one-way', '-c', 'all-gather', '--size', '1MiB', '--no-database', '--html', file('design.html'), '--json'], { stdio: ['ignore', 'pipe', 'ignore'] }));
    const { page, done } = await open(file('design.html'));
    assert.equal(await page.locator('h1').innerText(), `${answer.frontier.length} networks of 72 ranks with 2 ports`);
    const rows = (await page.locator('table[aria-label="Designs"] tbody tr').allInnerTexts()).map((row) => row.split('\t'));
    assert.deepEqual(rows.map((row) => [row[1], row[2]]), answer.frontier.map((row) => [row.recipe, String(row.tl)]));
    assert.equal(await page.locator('table[aria-label="Designs"] tr[aria-selected="true"] td').nth(1).innerText(), answer.frontier[answer.best].recipe);
    await shot(page, 'design');
    for (const i of [0, answer.frontier.length - 1]) {
      await page.getByRole('button', { name: `${i + 1}: ${answer.frontier[i].recipe}`, exact: true }).press('Enter');
      assert.ok((await page.locator('#reasons').innerText()).startsWith(`${i + 1}: ${answer.frontier[i].recipe}`));
      const network = await page.evaluate((at) => { const d = window.tutti.data; return d.networks[d.designs.rows[at].network].name; }, i);
      assert.ok((await page.getByRole('img', { name: /^Network / }).getAttribute('aria-label')).startsWith(`Network ${network}: 72 nodes`));
    }
    await done();
  },

  async 'a frontier of one point, and names of groups, can be read'() {
    const { page, done } = await open(make('design2.html', 'design', '-n', '2', '-d', '1', '-c', 'all-gather', '--no-database'));
    const boxes = await page.evaluate(() => [...document.querySelectorAll('svg.chart text')].map((text) => { const { left, top, right, bottom } = text.getBoundingClientRect(); return { text: text.textContent, left, top: top + 3, right, bottom: bottom - 3 }; }));
    assert.ok(boxes.some((one) => one.text === 'least TB of any network: 0.5') && boxes.some((one) => one.text === 'fewest steps of any network: 1'));
    boxes.forEach((a, i) => boxes.slice(i + 1).forEach((b) => assert.ok(a.right <= b.left || b.right <= a.left || a.bottom <= b.top || b.bottom <= a.top, `${a.text} lies on ${b.text}`)));
    await shot(page, 'design-two');
    await done();
    const groups = await open(make('groups.html', 'synth', 'torus(80,80)', '-c', 'broadcast', '-a', 'bfb'));
    const names = await groups.page.evaluate(async () => {
      const drawn = [], { prototype } = CanvasRenderingContext2D, fill = prototype.fillText;
      prototype.fillText = function (text, ...more) { drawn.push(text); fill.call(this, text, ...more); };
      window.tutti.heat.draw();
      prototype.fillText = fill;
      return drawn;
    });
    assert.ok(names.filter((name) => /^\d+$/.test(name)).length >= 8 && !names.some((name) => name.startsWith('block')), String(names));
    await shot(groups.page, 'groups');
    await groups.done();
  },

  async 'a flow shows its loads and why nothing is faster'() {
    const answer = JSON.parse(execFileSync(tutti, ['flow', 'mesh(4,3)', 'torus(4,4)', '--html', file('flow.html'), '--json'], { stdio: ['ignore', 'pipe', 'ignore'] }));
    const { page, done } = await open(file('flow.html'));
    const figures = await page.getByRole('region', { name: 'Rate of the flow' }).innerText();
    assert.ok(figures.includes(String(Number(answer.rows[0].f.value.toPrecision(6)))), figures);
    assert.match(figures, /Nothing is faster than/);
    // No link carries more than it can, some as much; each row of the table is its link.
    const flow = await page.evaluate(() => { const d = window.tutti.data, f = d.flows[0], l = d.networks[f.network].links; return { shares: f.load.map((x, i) => x / l.bandwidth[i]), names: l.tail.map((t, i) => `${t} -> ${l.head[i]}`) }; });
    assert.ok(Math.abs(Math.max(...flow.shares) - 1) < 1e-9);
    for (const row of await page.locator('table[aria-label="Links by load"] tbody tr').allInnerTexts()) {
      const [name, , share] = row.split('\t');
      assert.equal(share, `${(100 * flow.shares[flow.names.indexOf(name)]).toFixed(1)} %`);
    }
    await shot(page, 'flow');
    await click(page, await page.evaluate(() => window.tutti.network.linkAt(3)));
    assert.match(await details(page), /^Link 3: /);
    await page.getByLabel('What colours the links').selectOption('length');
    await shot(page, 'flow-length');
    await page.getByLabel('Network shown').selectOption({ index: 1 });
    assert.match(await page.locator('h1').innerText(), /all-to-all on torus\(4,4\)/);
    await done();
  },

  async 'predicted beside executed'() {
    const schedule = file('direct.sched');
    execFileSync(tutti, ['synth', 'complete(4)', '-c', 'all-reduce', '-a', 'direct', '-o', schedule], { stdio: 'ignore' });
    const { page, done } = await open(make('run.html', 'run', schedule, '--size', '64KiB,4MiB', '-n', '3'));
    assert.equal(await page.locator('h1').innerText(), 'all-reduce on complete(4): 4 results side by side');
    const rows = (await page.locator('table[aria-label="Figures of each result"] tbody tr').allInnerTexts()).map((row) => row.split('\t').slice(0, 2));
    assert.deepEqual(rows, [['64 KiB, predicted', 'simulated, barrier, links held'], ['64 KiB, executed', 'executed'], ['4 MiB, predicted', 'simulated, barrier, links held'], ['4 MiB, executed', 'executed']].map(([a, b]) => [a.replace(' KiB', 'KiB').replace(' MiB', 'MiB'), b]));
    assert.match(await page.locator('.note').first().innerText(), /The last of 3 iterations; their mean is/);
    assert.equal((await page.locator('table[aria-label="Step by step"] tbody tr').count()), 2);
    assert.equal(await page.getByRole('region', { name: 'Bound against reached' }).locator('.fill').count(), 6);
    await shot(page, 'run');
    await done();
  },

  async 'an iteration of training by its parts and its events'() {
    const answer = JSON.parse(execFileSync(tutti, ['train', 'resnet-50', 'torus(4,4,bw=3GB/s)', '-a', 'ring,bfb', '--html', file('train.html'), '--json'], { stdio: ['ignore', 'pipe', 'ignore'] }));
    const { page, done } = await open(file('train.html'));
    assert.match(await page.locator('h1').innerText(), /^resnet-50.* on torus\(4,4,/i);
    const rows = await page.evaluate(() => window.tutti.data.training.rows);
    assert.deepEqual(rows.map((row) => row.algorithm), ['ring', 'bfb', 'bound']);
    answer.rows.forEach((row, i) => assert.ok(Math.abs(rows[i].iteration_ps / 1e12 - row.iteration_s) < 1e-11));
    const cells = (await page.locator('table[aria-label="Iterations"] tbody tr').allInnerTexts()).map((row) => row.split('\t'));
    cells.forEach((row, i) => assert.equal(row[8], `${((100 * rows[2].iteration_ps) / rows[i].iteration_ps).toFixed(1)} %`));
    // The parts of each bar make the iteration.
    for (const row of rows) assert.equal(row.forward_ps + row.backward_ps + row.tensor_ps + row.all_to_all_ps + row.exposed_ps, row.iteration_ps);
    await page.getByRole('img', { name: /^Timeline of What runs when/ }).focus();
    await page.keyboard.press('ArrowRight');
    assert.ok((await page.locator('#event').innerText()).includes(`compute ${rows[0].events.name[0]} from 0 ps`), await page.locator('#event').innerText());
    await shot(page, 'train');
    await done();
  },

  async 'one rank and no transfers are no blank'() {
    const one = await open(make('one.html', 'topo', 'show', 'mesh(1)'));
    assert.match(await one.page.locator('header').innerText(), /1 rank, 0 links/);
    await one.done();
    // Every command that takes one rank: words in place of a chart of nothing, and no word of a number that is none.
    const schedule = file('one.sched');
    execFileSync(tutti, ['synth', 'mesh(1)', '-c', 'all-reduce', '-a', 'bfb', '-o', schedule], { stdio: 'ignore' });
    const pages = { synth: [/has no transfers/, 'synth', 'mesh(1)', '-c', 'all-gather', '-a', 'bfb'], verify: [/has no transfers/, 'verify', schedule], sim: [/has no transfers/, 'sim', schedule, '--size', '1KiB'],
      run: [/2 results side by side/, 'run', schedule, '--size', '1KiB', '-n', '1'], compare: [/There is nothing to draw: nothing is sent/, 'compare', 'mesh(1)', '-c', 'all-reduce', '-a', 'bfb,ring'], train: [/an iteration of training on 1 rank/, 'train', 'resnet-50', 'mesh(1)', '-a', 'ring'] };
    for (const [name, [words, ...command]] of Object.entries(pages)) {
      const { page, done } = await open(make(`one-${name}.html`, ...command));
      const text = await page.locator('body').innerText();
      assert.match(text, words, name);
      assert.doesNotMatch(text, /NaN|Infinity|undefined/, name);
      await done();
    }
    const made = { ...JSON.parse(readFileSync(file('ring.json'), 'utf8')) };
    made.transfers = [];
    writeFileSync(file('empty.json'), JSON.stringify(made));
    spawnSync(tutti, ['verify', file('empty.json'), '--html', file('empty.html')]);
    const empty = await open(file('empty.html'));
    assert.match(await empty.page.locator('#page').innerText(), /has no transfers/);
    await empty.done();
  },

  async 'damaged pages say so'() {
    const text = readFileSync(file('torus.html'), 'utf8');
    const at = text.indexOf('id="tutti-data"');
    const begin = text.indexOf('>', at) + 1, end = text.indexOf('</script>', begin);
    const spoiled = {
      'cut-off data': [text.slice(0, begin) + text.slice(begin, begin + 4 * 50) + text.slice(end), /cut off or damaged/],
      'no base64': [`${text.slice(0, begin)}%%%${text.slice(end)}`, /no base64/],
      'no data': [text.slice(0, text.lastIndexOf('<script type="text/plain"', begin)) + text.slice(end + 9), /holds no data/],
      'another length': [text.replace(/data-bytes="\d+"/, 'data-bytes="7"'), /where 7 were written/],
    };
    for (const [name, [html, words]] of Object.entries(spoiled)) {
      writeFileSync(file('spoiled.html'), html);
      const { page, done } = await open(file('spoiled.html'), 'failed');
      assert.match(await page.getByRole('alert').innerText(), words, name);
      await done();
    }
    // Without its program, which stands last, nothing runs: the page says so by what it begins with.
    for (const length of [begin + 100, text.length - 1000]) {
      writeFileSync(file('spoiled.html'), text.slice(0, length));
      const { page, done } = await open(file('spoiled.html'), null);
      assert.match(await page.locator('body').innerText(), /Where this line stays, the file has been cut off/);
      await done();
    }
  },

  async 'hostile names run no script'() {
    const names = ['</script><script>alert(1)</script>', '<img src=x onerror=alert(2)>', "'\"><svg onload=alert(3)>"];
    writeFileSync(file('hostile.topo.json'), JSON.stringify({ format: 'tutti-topology', version: 1, name: names[1], nodes: names.map((name) => ({ name, kind: 'rank' })),
      links: names.map((name, i) => ({ from: name, to: names[(i + 1) % 3], duplex: true, bandwidth: '1GB/s', alpha: '1us' })) }));
    const { page, done } = await open(make('hostile.html', 'synth', file('hostile.topo.json'), '-c', 'all-gather', '-a', 'bfb'));
    await page.evaluate(() => window.tutti.select({ kind: 'node', node: 1 }));
    assert.ok((await details(page)).includes(names[1]));
    assert.equal(await page.evaluate(() => document.querySelectorAll('img, svg:not(.chart)').length), 0);
    await done();
    // Those of operations and of layers.
    const [one, two, three] = names, events = { lane: [0], sequence: [0], waits: [0], bytes: [1], start_ps: [0], end_ps: [9], name: [two] };
    const net = { name: one, ranks: 1, nodes: 1, links_total: 0, host_limits: 0, names: [two], grid: null, links: { tail: [], head: [], bandwidth: [], alpha_ps: [] } };
    const row = { algorithm: three, iteration_ps: 9, forward_ps: 9, backward_ps: 0, tensor_ps: 0, all_to_all_ps: 0, exposed_ps: 0, gradients_ps: 0, events: { activity: [0], start_ps: [0], end_ps: [9], name: [two] } };
    for (const data of [{ command: 'service trace', operations: { title: one, how: two, omitted: three, lanes: [one], events } }, { command: 'train', networks: [net], training: { network: 0, workload: one, how: two, omitted: three, rows: [row] } }]) {
      const { page, done } = await open(withData('hostile-data.html', data));
      for (const name of names) assert.ok((await page.locator('body').innerText()).includes(name), `${data.command}: ${name}`);
      assert.equal(await page.evaluate(() => document.querySelectorAll('img, svg:not(.chart)').length), 0, data.command);
      await done();
    }
    // Names in charts, lists and titles of the other pages; the file's own name too.
    const network = file('<img src=x onerror=alert(4)>.topo.json'), schedule = file('<svg onload=alert(5)>.sched');
    writeFileSync(network, readFileSync(file('hostile.topo.json')));
    execFileSync(tutti, ['synth', network, '-c', 'all-gather', '-a', 'bfb', '-o', schedule], { stdio: 'ignore' });
    execFileSync(tutti, ['explore', schedule, schedule, '--size', '1KiB', '-o', file('hostile-explore.html')], { stdio: 'ignore' });
    for (const path of [file('hostile-explore.html'), make('hostile-compare.html', 'compare', network, '-c', 'all-gather', '-a', 'bfb,ring,tto', '--size', '1KiB'), make('hostile-flow.html', 'flow', network, network), make('hostile-run.html', 'run', schedule, '--size', '1KiB', '-n', '1'), make('hostile-train.html', 'train', 'resnet-50', network, '-a', 'ring')]) {
      const other = await open(path);
      assert.equal(await other.page.evaluate(() => document.querySelectorAll('img, svg:not(.chart)').length), 0, path);
      const nameless = await other.page.evaluate(() => [...document.querySelectorAll('button, select, input, canvas, [role=button]')].filter((e) => !(e.getAttribute('aria-label') || e.textContent.trim())).length);
      assert.equal(nameless, 0, path);
      await other.done();
    }
  },

  async 'a network of thousands opens as groups'() {
    const { page, done } = await open(make('large.html', 'topo', 'show', 'torus(200,200)'));
    assert.equal(await page.evaluate(() => window.tutti.data.networks[0].nodes), 40_000);
    const groups = await page.evaluate(() => window.tutti.data.networks[0].groups.names.length);
    assert.ok((await page.getByRole('region', { name: 'Network' }).innerText()).includes(`too large to be drawn node by node: ${groups} groups, as a grid`));
    await shot(page, 'large');
    await done();
  },

  async 'a million transfers: measured and printed'() {
    const before = process.hrtime.bigint();
    const path = make('million.html', 'synth', 'torus(32,32)', '-c', 'all-gather', '-a', 'bfb');
    const made = Number(process.hrtime.bigint() - before) / 1e9;
    const { page, done } = await open(path);
    const figures = await page.evaluate(async () => {
      const first = Number(document.documentElement.dataset.firstPictureMs);
      const time = window.tutti.data.schedules[0].simulation.time_ps;
      let frames = 0;
      const begin = performance.now();
      while (performance.now() - begin < 2000) {
        window.tutti.setTime(time * ((performance.now() - begin) / 2000));
        await new Promise(requestAnimationFrame);
        ++frames;
      }
      return { transfers: window.tutti.data.schedules[0].transfers_total, first_picture_ms: first, playing_fps: frames / 2, timeline_ms: window.tutti.timeline.lastDrawMs };
    });
    for (const [what, name] of [['panning_network_fps', /^Network torus/], ['panning_timeline_fps', /^Timeline of/]]) {
      const canvas = page.getByRole('img', { name });
      await canvas.scrollIntoViewIfNeeded();
      const box = await canvas.boundingBox();
      figures[what] = await page.evaluate(async ([x, y, label]) => {
        const at = [...document.querySelectorAll('canvas')].find((one) => one.getAttribute('aria-label').startsWith(label));
        const send = (type, dx) => at.dispatchEvent(new PointerEvent(type, { clientX: x + dx, clientY: y, pointerId: 1, bubbles: true }));
        at.setPointerCapture = () => undefined; // no pointer of that number is down
        send('pointerdown', 0);
        let frames = 0;
        const begin = performance.now();
        while (performance.now() - begin < 2000) {
          send('pointermove', 40 * Math.sin((performance.now() - begin) / 150));
          await new Promise(requestAnimationFrame);
          ++frames;
        }
        send('pointerup', 0);
        return frames / 2;
      }, [box.x + box.width / 2, box.y + box.height / 2, name.source.slice(1)]);
    }
    // What panning left of the picture is the picture of that window, to a shade.
    const apart = await page.evaluate(async () => {
      const { timeline } = window.tutti, canvas = [...document.querySelectorAll('canvas')].find((one) => one.getAttribute('aria-label').startsWith('Timeline of'));
      const pixels = async () => {
        timeline.refresh();
        await new Promise(requestAnimationFrame);
        await new Promise(requestAnimationFrame);
        return canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
      };
      timeline.zoomBy(3);
      await pixels();
      for (const pixels of [40, -7, 19, 300, -60]) {
        timeline.from += pixels * timeline.perPixel;
        timeline.drawDensity(document.createElement('canvas').getContext('2d'));
      }
      const moved = await pixels();
      timeline.density = null;
      const whole = await pixels();
      let most = 0, drawn = 0;
      for (let i = 0; i < whole.length; ++i) most = Math.max(most, Math.abs(whole[i] - moved[i])), drawn += Number(whole[i] > 0);
      return { most, drawn };
    });
    assert.ok(apart.most <= 2 && apart.drawn > 1000, JSON.stringify(apart));
    const plain = process.hrtime.bigint();
    execFileSync(tutti, ['synth', 'torus(32,32)', '-c', 'all-gather', '-a', 'bfb'], { stdio: ['ignore', 'ignore', 'inherit'] });
    figures.page_adds_s = Number((made - Number(process.hrtime.bigint() - plain) / 1e9).toFixed(2));
    console.log(`    command ${made.toFixed(1)} s, page ${(readFileSync(path).length / 1e6).toFixed(1)} MB, ${JSON.stringify(figures)}`);
    assert.ok(figures.transfers > 1_000_000);
    // From all of them to one.
    const one = 700_000, name = await page.evaluate((at) => {
      const { timeline, data } = window.tutti, m = data.schedules[0].messages, l = data.networks[0].links;
      timeline.zoomBy((timeline.perPixel * 300) / (m.free_ps[at] - m.start_ps[at]));
      timeline.messageAt(at);
      return `${l.tail[m.link[at]]} -> ${l.head[m.link[at]]}, step ${m.step[at] + 1}`;
    }, Math.min(one, await page.evaluate(() => window.tutti.data.schedules[0].messages.link.length - 1)));
    await page.getByRole('img', { name: /^Timeline of/ }).scrollIntoViewIfNeeded();
    await click(page, await page.evaluate((at) => window.tutti.timeline.messageAt(Math.min(at, window.tutti.data.schedules[0].messages.link.length - 1)), one));
    assert.ok((await details(page)).includes(` over ${name}`), await details(page));
    // Who waits for whom is found when asked for.
    await page.getByRole('button', { name: 'Find who waits for whom' }).click();
    assert.match(await page.locator('#waits-words').innerText(), /Behind it stands a chain of \d+ messages/);
    await shot(page, 'million');
    await done();
  },
};

let failed = 0;
for (const [name, run] of Object.entries(tests)) {
  if (process.env.ONLY && !name.includes(process.env.ONLY)) continue;
  const begin = performance.now();
  try {
    await run();
    console.log(`ok   ${name} (${((performance.now() - begin) / 1000).toFixed(1)} s)`);
  } catch (error) {
    ++failed;
    console.log(`FAIL ${name}\n${error.stack ?? error}`);
  }
}
await browser.close();
rmSync(folder, { recursive: true });
process.exit(failed > 0 ? 1 : 0);
