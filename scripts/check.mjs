// Format, lint, types and import directions: each by its own tool, all run, the first failure's code kept.
import { spawnSync } from 'node:child_process';

const bin = 'node_modules/.bin/';
const CHECKS = {
  format: [`${bin}biome`, ['ci', '.']],
  lint: [`${bin}oxlint`, ['--deny-warnings']],
  types: [process.execPath, ['node_modules/@typescript/native/bin/tsc', '-p', 'tsconfig.json']],
  imports: [`${bin}depcruise`, ['--config', '.dependency-cruiser.cjs', 'packages']],
};

const wanted = process.argv.slice(2);
for (const [name, [command, args]] of Object.entries(CHECKS)) {
  if (wanted.length > 0 && !wanted.includes(name)) continue;
  const { status } = spawnSync(command, args, { stdio: 'inherit' });
  console.log(`${name}: ${status === 0 ? 'ok' : 'FAILED'}`);
  if (status !== 0) process.exitCode = 1;
}
