// Type-checks every ```ts block of the README files and docs/, each as a module of its own, with the names of
// scripts/docs-globals.d.ts in scope; finds links to files and headings that are not there; and holds the tables of docs/errors.md
// against the codes in the sources.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { root } from './setup.mjs';

const out = join(root, 'node_modules/.cache/docs-check');
rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });

const pages = listPages();
const origin = new Map();
let broken = 0;
for (const page of pages) {
  const text = readFileSync(join(root, page), 'utf8');
  for (const [, target, heading = ''] of text.matchAll(/\]\(([^)#\s]*)(?:#([^)]*))?\)/g)) {
    if (/^[a-z]+:/i.test(target)) continue;
    const file = target === '' ? join(root, page) : resolve(root, dirname(page), target);
    if (!existsSync(file)) {
      console.error(`${page}: no file ${target}`);
      broken++;
    } else if (heading !== '' && !headingsOf(file).has(heading)) {
      console.error(`${page}: no heading #${heading} in ${target}`);
      broken++;
    }
  }
  let block = 0;
  for (const match of text.matchAll(/^```ts\n([\s\S]*?)^```$/gm)) {
    const line = text.slice(0, match.index).split('\n').length;
    const file = `${page.replace(/[^\w]/g, '_')}_${++block}.ts`;
    writeFileSync(join(out, file), `${match[1]}\nexport {};\n`);
    origin.set(file, { page, line });
  }
}

writeFileSync(
  join(out, 'tsconfig.json'),
  JSON.stringify({
    extends: join(root, 'tsconfig.json'),
    compilerOptions: {
      rootDir: root,
      noUnusedLocals: false,
      noUnusedParameters: false,
      verbatimModuleSyntax: false,
      // one undici for a block and for what it calls, as a reader has
      paths: { undici: [join(root, 'packages/fetch/node_modules/undici/index.d.ts')] },
    },
    include: ['*.ts', join(root, 'scripts/docs-globals.d.ts')],
  }),
);
const tsc = join(root, 'node_modules/@typescript/native/bin/tsc');
const { status, stdout } = spawnSync(process.execPath, [tsc, '-p', out, '--pretty', 'false'], {
  cwd: root,
  encoding: 'utf8',
});
// a place in a block is told as a place in its page
for (const line of stdout.split('\n').filter(Boolean)) {
  const match = /([^/(]+\.ts)\((\d+),(\d+)\): (.*)$/.exec(line);
  const from = match ? origin.get(match[1]) : undefined;
  console.error(from ? `${from.page}:${from.line + Number(match[2])}: ${match[4]}` : line);
}
console.log(`docs: ${origin.size} blocks on ${pages.length} pages`);
broken += checkCodes();
process.exitCode = status !== 0 || broken > 0 ? 1 : 0;

/** Every code that a package gives out stands in a table of docs/errors.md, and no other does. */
function checkCodes() {
  // read here, made elsewhere: by axios and by Node; and all those that a verdict tells apart
  const others = new Set(['ERR_CANCELED', 'ERR_STREAM_PREMATURE_CLOSE']);
  const readers = [':!packages/client/src/verdict.ts', ':!packages/bench', ':!packages/testkit'];
  const sources = ['packages/*/src/*.ts', ...readers];
  const grep = ['grep', '--untracked', '-hoE', "'(ERR|WARN)_[A-Z_]+'", '--', ...sources];
  const { stdout: found } = spawnSync('git', grep, { cwd: root, encoding: 'utf8' });
  const made = new Set(found.replaceAll("'", '').split('\n').filter(Boolean));
  const page = readFileSync(join(root, 'docs/errors.md'), 'utf8');
  const listed = new Set(Array.from(page.matchAll(/^\| `((?:ERR|WARN)_\w+)`/gm), (row) => row[1]));
  const missing = [...made].filter((code) => !listed.has(code) && !others.has(code));
  const stale = [...listed].filter((code) => !made.has(code));
  for (const code of missing) console.error(`docs/errors.md: ${code} is missing`);
  for (const code of stale) console.error(`docs/errors.md: no source has ${code}`);
  console.log(
    `codes: ${listed.size} on docs/errors.md, ${made.size} in the sources, others’ included`,
  );
  return missing.length + stale.length;
}

/** What links to a page may end in: its headings as GitHub and the API reference spell them. */
function headingsOf(file) {
  const text = readFileSync(file, 'utf8').replace(/^```[\s\S]*?^```$/gm, '');
  const spelled = [...text.matchAll(/^#{1,6} (.*)$/gm)].map(([, heading]) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N}_ -]/gu, '')
      .replaceAll(' ', '-'),
  );
  return new Set(spelled);
}

function listPages() {
  const { stdout: listed } = spawnSync(
    'git',
    ['ls-files', '--cached', '--others', '--exclude-standard', '*.md'],
    {
      cwd: root,
      encoding: 'utf8',
    },
  );
  return listed
    .split('\n')
    .filter(
      (file) => file !== '' && !/CHANGELOG|\/etc\//.test(file) && existsSync(join(root, file)),
    );
}
