// Every bench that has peers in it, one after the other; `npm run -s bench -- [--quick] [--save]`. For a machine that
// does nothing else. --save puts the figures where the documents look for them. Exits 1 if a mark is not held.
import { spawnSync } from 'node:child_process';
import { root } from './setup.mjs';

const RESULTS = 'packages/bench/results';
const asked = process.argv.slice(2);
const unknown = asked.find((arg) => arg !== '--quick' && arg !== '--save');
if (unknown !== undefined) {
  const usage = 'npm run -s bench -- [--quick] [--save]';
  console.error(unknown === '--help' ? usage : `no ${unknown}; ${usage}`);
  process.exit(unknown === '--help' ? 0 : 2);
}
const quick = asked.includes('--quick') ? ['--quick'] : [];
const save = (name) => (asked.includes('--save') ? ['--json', `${RESULTS}/${name}.json`] : []);

const BENCHES = {
  'bench:micro': [...quick, ...save('micro')],
  'bench:rate-express': save('rate-express'),
  'bench:rate-redis': save('rate-redis'),
  'lab:breaker': save('breaker'),
  'bench:http': [...quick, ...save('http')],
};
const short = [];
for (const [task, args] of Object.entries(BENCHES)) {
  console.log(`\n== ${task}`);
  const { status } = spawnSync(process.execPath, ['scripts/run.mjs', task, ...args], {
    cwd: root,
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  if (status !== 0) short.push(task);
}
console.log(short.length > 0 ? `\nmarks not held in ${short.join(', ')}` : '\nall marks hold');
process.exitCode = short.length > 0 ? 1 : 0;
