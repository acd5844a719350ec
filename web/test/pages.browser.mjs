// Opens pages made by the built command in a browser, clicks, reads back what is shown and compares it with the data.
//   TUTTI=build/release/bin/tutti CHROMIUM=/usr/bin/chromium node web/test/pages.browser.mjs [FOLDER for pictures]
// Ends with 1 where something is not as it should be.
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
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
  await page.waitForFunction((wanted) => document.documentElement.dataset.state === wanted, state, { timeout: 120_000 });
  return { page, done: async () => {
    assert.deepEqual(requests, [], 'the page asked for something from outside');
    assert.deepEqual(faults, []);
    await page.close();
  } };
}
const details = (page) => page.locator('#details').innerText();
const shot = async (page, name) => { if (pictures) await page.screenshot({ path: join(pictures, `${name}.png`), fullPage: true }); };
const click = async (page, place) => { const [x, y] = place; await page.mouse.click(x, y); };

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

  async 'the clock plays, pauses and is set by keys'() {
    const { page, done } = await open(file('torus.html'));
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
    await page.keyboard.press('Escape');
    assert.match(await details(page), /^Nothing is chosen/);
    const nameless = await page.evaluate(() => [...document.querySelectorAll('button, select, input, canvas')].filter((e) => !(e.getAttribute('aria-label') || e.textContent.trim())).length);
    assert.equal(nameless, 0);
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
    await page.getByRole('button', { name: 'Draw the bottleneck cut in red' }).click();
    assert.equal(await page.evaluate(() => window.tutti.network.linksOfCut.size), 0);
    await done();
  },

  async 'layouts follow the structure'() {
    for (const [name, expression, kind] of [['torus3d', 'torus(3,3,3)', 'grid'], ['ring', 'ring(10)', 'ring'], ['boxes', 'dgx_h100(2)', 'boxes'], ['clos', 'fat_tree(4)', 'layers'], ['force', 'genkautz(3,24)', 'force'], ['dgx1', 'dgx1', 'ring']]) {
      const { page, done } = await open(make(`${name}.html`, 'topo', 'show', expression));
      assert.equal(await page.evaluate(() => window.tutti.network.layout.kind), kind, expression);
      await shot(page, `layout-${name}`);
      await done();
    }
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
    assert.match(await details(page), /^Message \d+ over/);
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
    assert.match(await page.locator('table[aria-label="Sizes asked for"] tr[aria-selected="true"]').innerText(), /^ring/);
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
  },

  async 'hostile names run no script'() {
    const names = ['</script><script>alert(1)</script>', '<img src=x onerror=alert(2)>', "'\"><svg onload=alert(3)>"];
    writeFileSync(file('hostile.topo.json'), JSON.stringify({ format: 'tutti-topology', version: 1, name: names[1], nodes: names.map((name) => ({ name, kind: 'rank' })),
      links: names.map((name, i) => ({ from: name, to: names[(i + 1) % 3], duplex: true, bandwidth: '1GB/s', alpha: '1us' })) }));
    const { page, done } = await open(make('hostile.html', 'synth', file('hostile.topo.json'), '-c', 'all-gather', '-a', 'bfb'));
    await page.evaluate(() => window.tutti.select({ kind: 'node', node: 1 }));
    assert.ok((await details(page)).includes(names[1]));
    assert.equal(await page.evaluate(() => document.querySelectorAll('img, svg').length), 0);
    await done();
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
    const { page, done } = await open(make('large.html', 'topo', 'show', 'torus(80,80)'));
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
    console.log(`    command ${made.toFixed(1)} s, page ${(readFileSync(path).length / 1e6).toFixed(1)} MB, ${JSON.stringify(figures)}`);
    assert.ok(figures.transfers > 1_000_000);
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
