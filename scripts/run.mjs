// The one door for commands: sets up what the task needs, then runs it. `node scripts/run.mjs` lists the tasks.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { needBuild, needNode, needPackages, needPrograms, root, stop } from './setup.mjs';

/** A TypeScript entry, run on sources; or a script; `build` and `programs` say what it needs first. */
const TASKS = {
  test: {
    about: 'every test, on the packages’ sources',
    script: 'scripts/test.mjs',
    programs: true,
  },
  ci: { about: 'everything CI runs', script: 'scripts/ci.mjs' },
  build: {
    about: 'dist/ of every package',
    script: 'node_modules/lerna/dist/cli.js',
    args: ['run', 'build'],
  },
  check: { about: 'format, lint, types, import directions', script: 'scripts/check.mjs' },
  matrix: {
    about: 'the tests on other Node majors: matrix -- [22 24 26] [--quick]',
    script: 'scripts/matrix.mjs',
    programs: true,
  },
  'docs:api': {
    about: 'the API reference, from the sources, into docs/api',
    script: 'node_modules/typedoc/bin/typedoc',
    build: true,
  },
  demo: {
    about: 'one service bare and protected under the same overload',
    ts: 'packages/bench/src/demo/main.ts',
  },
  vectors: {
    about: 'replay golden vectors: vectors -- DIR…',
    ts: 'packages/testkit/src/vectors/main.ts',
  },
  'bench:http': {
    about:
      'real servers under real overload, beside the peers: bench:http -- [--quick] [--json FILE]',
    ts: 'packages/bench/src/http/main.ts',
  },
  'bench:micro': {
    about:
      'what a call and a request cost, beside the peers: bench:micro -- [--quick] [--json FILE]',
    ts: 'packages/bench/src/micro/main.ts',
    build: true,
  },
  'bench:rate-express': {
    about:
      'what a rate limit adds to a request, beside express-rate-limit: bench:rate-express -- [--json FILE]',
    ts: 'packages/bench/src/rate/express.ts',
    build: true,
  },
  'bench:rate-redis': {
    about: 'one quota over two processes, beside the peers: bench:rate-redis -- [--json FILE]',
    ts: 'packages/bench/src/rate/redis.ts',
    build: true,
    programs: true,
  },
  bench: {
    about: 'every bench beside the peers, one after the other: bench -- [--quick] [--save]',
    script: 'scripts/bench.mjs',
    programs: true,
  },
  'bench:slow-clients': {
    about: 'what fifty slow clients leave to the others: bench:slow-clients -- [--seconds N]',
    ts: 'packages/bench/src/slow-clients/main.ts',
  },
  'bench:two-sides': {
    about:
      'our server behind our client at overload: bench:two-sides -- [--quick] [--json FILE.json]',
    ts: 'packages/bench/src/two-sides/main.ts',
  },
  soak: {
    about:
      'mixed traffic with faults, then everything must be back: soak -- [--minutes N | --quick]',
    ts: 'packages/bench/src/soak/main.ts',
    programs: true,
  },
  'lab:breaker': {
    about:
      'our breaker beside opossum and cockatiel: lab:breaker -- [NAME…] [--varied] [--seeds N] [--json FILE]',
    ts: 'packages/bench/src/breaker/main.ts',
  },
  lab: {
    about: 'the simulated lab: lab -- [FILE.json…] [--arm NAME] [--seeds N] (--help says more)',
    ts: 'packages/bench/src/sim/main.ts',
  },
  'lab:quick': {
    about: 'the regression test of the engines, in under a minute',
    ts: 'packages/bench/src/sim/main.ts',
    args: ['--quick'],
  },
};

const [task = '', ...args] = process.argv.slice(2);
const chosen = Object.hasOwn(TASKS, task) ? TASKS[task] : undefined;
if (chosen === undefined) {
  const lines = Object.entries(TASKS).map(([name, { about }]) => `  ${name.padEnd(14)}${about}`);
  stop(`${task === '' ? 'Tasks' : `No task ${task}. Tasks`}:\n${lines.join('\n')}`);
}

needNode();
needPackages();
const runs = !args.includes('--help');
if (runs && chosen.build) needBuild();
const env = { ...process.env, ...(runs && chosen.programs && needPrograms()) };
const command = chosen.ts
  ? ['--conditions=@elimit/source', '--import', 'tsx', join(root, chosen.ts)]
  : [join(root, chosen.script)];
const { status, signal } = spawnSync(
  process.execPath,
  ['--disable-warning=ExperimentalWarning', ...command, ...(chosen.args ?? []), ...args],
  // files named on the command line are relative to where the user stands; npm runs scripts at the root
  { cwd: chosen.ts ? (process.env.INIT_CWD ?? process.cwd()) : root, stdio: 'inherit', env },
);
process.exitCode = signal ? 1 : (status ?? 1);
