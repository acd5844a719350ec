// Builds dist/explorer.html: one file, without a request to anywhere; the same bytes for the same sources and lock
// file. `node build.mjs --check` builds nothing and says (exit 1) whether the artefact is older than its sources.
import { createHash } from 'node:crypto';
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(fileURLToPath(import.meta.url));
const artefact = join(root, 'dist/explorer.html');

// What the artefact is made of. scripts and tests compute the same hash: names and bytes, in order of names.
export function hashOfSources() {
  const files = ['build.mjs', 'index.html', 'package-lock.json', 'package.json', 'tsconfig.json',
    ...readdirSync(join(root, 'src')).map((name) => `src/${name}`)].sort();
  const hash = createHash('sha256');
  for (const file of files) hash.update(file).update('\0').update(readFileSync(join(root, file))).update('\0');
  return hash.digest('hex');
}

async function build() {
  const { build: bundle } = await import('vite');
  const { viteSingleFile } = await import('vite-plugin-singlefile');
  await bundle({ root, logLevel: 'warn', configFile: false, esbuild: { charset: 'ascii' }, plugins: [viteSingleFile({ removeViteModuleLoader: true })],
    build: { outDir: join(root, 'build'), emptyOutDir: true, target: 'es2022', modulePreload: false } });
  let html = readFileSync(join(root, 'build/index.html'), 'utf8');
  const script = /<script type="module"[^>]*>([\s\S]*?)<\/script>/.exec(html);
  if (script === null) throw new Error('the bundle has no inline script');
  html = html.replace(script[0], '');
  // Behind the data, which it reads; the policy lets nothing else run and nothing be fetched.
  const code = script[1];
  const digest = createHash('sha256').update(code).digest('base64');
  const policy = `default-src 'none'; script-src 'sha256-${digest}'; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'`;
  html = html.replace('<meta charset="utf-8">', () => `<meta charset="utf-8">\n<meta http-equiv="Content-Security-Policy" content="${policy}">`);
  html = html.replace('name="tutti-sources" content="none"', () => `name="tutti-sources" content="${hashOfSources()}"`);
  html = html.replace('<!--tutti-data-->', () => `<!--tutti-data-->\n<script type="module">${code}</script>`);
  writeFileSync(artefact, html);
  console.log(`${artefact}: ${html.length} characters`);
}

if (process.argv.includes('--check')) {
  const found = /name="tutti-sources" content="([0-9a-f]+)"/.exec(readFileSync(artefact, 'utf8'));
  if (found === null || found[1] !== hashOfSources()) {
    console.error('web/dist/explorer.html is older than web/: run scripts/build_page');
    process.exit(1);
  }
} else {
  await build();
}
