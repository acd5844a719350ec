// Opens pages made by the built command in Firefox, as it is installed, by WebDriver BiDi: they are shown, drawn, answer to a choice
// and ask for nothing. What they show in detail is tested in Chromium (pages.browser.mjs).
//   TUTTI=build/release/bin/tutti FIREFOX=/usr/bin/firefox-esr node web/test/firefox.mjs
// Ends with 1 where something is not as it should be.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import bundled from 'playwright-core/lib/utilsBundle'; // node 20 has no WebSocket of its own

const tutti = process.env.TUTTI ?? 'build/release/bin/tutti';
const folder = mkdtempSync(join(tmpdir(), 'tutti-firefox-'));
const file = (name) => join(folder, name);
const LIMIT_MS = 180_000;

const within = (what, promise) => {
  let timer;
  const late = new Promise((_, refuse) => { timer = setTimeout(() => refuse(new Error(`${what}: no answer in ${LIMIT_MS / 1000} s`)), LIMIT_MS); });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
};

const firefox = spawn(process.env.FIREFOX ?? 'firefox-esr', ['--headless', '--no-remote', '--profile', file('.'), '--remote-debugging-port', '0', '--window-size=1280,900'], { stdio: ['ignore', 'ignore', 'pipe'] });

async function connect() {
  const url = await within('Firefox', new Promise((found, refuse) => {
    let said = '';
    firefox.on('error', refuse);
    firefox.stderr.on('data', (part) => {
      said += part;
      const line = /WebDriver BiDi listening on (ws:\S+)/.exec(said);
      if (line) found(line[1]);
    });
  }));
  const socket = new bundled.ws(`${url}/session`);
  await within('its socket', new Promise((open, refuse) => socket.on('open', open).on('error', refuse)));
  const waiting = new Map(), requests = [];
  socket.on('message', (text) => {
    const message = JSON.parse(text);
    if (message.method === 'network.beforeRequestSent') requests.push(message.params.request.url);
    waiting.get(message.id)?.(message);
  });
  let count = 0;
  const send = (method, params) => within(method, new Promise((answer, refuse) => {
    const id = ++count;
    waiting.set(id, (message) => (message.type === 'error' ? refuse(new Error(`${method}: ${message.message}`)) : answer(message.result)));
    socket.send(JSON.stringify({ id, method, params }));
  }));
  return { send, requests };
}

// In the page: waits until it is shown or says why not, chooses the first node where there is one, and tells what is there.
const LOOK = `(async () => {
  for (;;) {
    if (document.documentElement.dataset.state) break;
    await new Promise((on) => setTimeout(on, 50));
  }
  window.tutti?.select({ kind: 'node', node: 0 });
  await new Promise(requestAnimationFrame);
  const painted = (canvas) => canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.some((value) => value > 0);
  return JSON.stringify({ state: document.documentElement.dataset.state, title: document.querySelector('h1')?.textContent, alert: document.querySelector('[role=alert]')?.textContent,
    chosen: document.querySelector('#details')?.textContent, canvases: [...document.querySelectorAll('canvas')].map(painted), lines: document.querySelectorAll('svg.chart path').length });
})()`;

const PAGES = [
  ['synth', /^all-gather on torus\(4,4\) by bfb$/, 3, 'synth', 'torus(4,4)', '-c', 'all-gather', '-a', 'bfb'],
  ['topo', /^dgx_h100\(2\)$/, 1, 'topo', 'show', 'dgx_h100(2)'],
  ['compare', /^all-reduce on ring\(4\): 2 algorithms$/, 1, 'compare', 'ring(4)', '-c', 'all-reduce', '-a', 'ring,bfb'],
  ['design', /^1 network of 6 ranks|^\d+ networks of 6 ranks/, 1, 'design', '-n', '6', '-d', '2', '-c', 'all-gather', '--no-database'],
  ['flow', /^all-to-all on mesh\(3,2\)$/, 1, 'flow', 'mesh(3,2)'],
  ['train', /^resnet-50 on ring\(4\)$/i, 2, 'train', 'resnet-50', 'ring(4)', '-a', 'ring'],
  ['large', /^torus\(80,80\)$/, 1, 'topo', 'show', 'torus(80,80)'],
];

let failed = 0;
try {
  const { send, requests } = await connect();
  const { capabilities } = await send('session.new', { capabilities: {} });
  await send('session.subscribe', { events: ['network.beforeRequestSent'] });
  const { context } = (await send('browsingContext.getTree', {})).contexts[0];
  const look = async (path) => {
    requests.length = 0;
    await send('browsingContext.navigate', { context, url: `file://${path}`, wait: 'complete' });
    const { result } = await send('script.evaluate', { expression: LOOK, target: { context }, awaitPromise: true });
    assert.deepEqual(requests.filter((url) => !/^(file|data|blob|about):/.test(url)), [], 'the page asked for something from outside');
    return JSON.parse(result.value);
  };
  for (const [name, title, canvases, ...command] of PAGES) {
    const path = file(`${name}.html`);
    execFileSync(tutti, [...command, '--html', path], { stdio: ['ignore', 'ignore', 'inherit'] });
    const seen = await look(path);
    assert.equal(seen.state, 'shown', name);
    assert.match(seen.title, title);
    assert.deepEqual(seen.canvases, Array(canvases).fill(true), `${name}: what is painted`);
    if (name !== 'train') assert.match(seen.chosen, /^(Rank|Group) .+: \d+ links? out/, name);
    if (['compare', 'design', 'synth'].includes(name)) assert.ok(seen.lines > 0, name);
  }
  const text = readFileSync(file('synth.html'), 'utf8');
  writeFileSync(file('spoiled.html'), text.replace(/data-bytes="\d+"/, 'data-bytes="7"'));
  const spoiled = await look(file('spoiled.html'));
  assert.equal(spoiled.state, 'failed');
  assert.match(spoiled.alert, /where 7 were written/);
  console.log(`ok   ${PAGES.length + 1} pages in ${capabilities.browserName} ${capabilities.browserVersion}`);
  await send('browser.close', {}).catch(() => undefined);
} catch (error) {
  failed = 1;
  console.log(`FAIL pages in Firefox\n${error.stack ?? error}`);
}
firefox.kill();
if (firefox.exitCode === null) await within('its end', new Promise((ended) => firefox.on('exit', ended)));
rmSync(folder, { recursive: true, maxRetries: 20, retryDelay: 100 });
process.exit(failed);
