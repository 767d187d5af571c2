import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from '@jest/globals';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

function run(task: string, ...args: string[]) {
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    ['scripts/run.mjs', task, ...args],
    { cwd: ROOT, encoding: 'utf8' },
  );
  return { status, stdout, stderr };
}

describe('the command line of the benches', () => {
  it.each(['demo', 'lab', 'bench:http', 'bench:micro', 'soak'])(
    '%s --help tells the options',
    (task) => {
      const { status, stdout, stderr } = run(task, '--help');
      expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
      expect(stdout).toMatch(/^npm run .*\n {2}--/s);
    },
  );

  it.each([
    ['lab', ['--no-such'], /'--no-such'/],
    ['lab', ['--seeds', '0'], /--seeds must be a number from 1 to 1000, got "0"/],
    ['bench:http', ['--arms', 'nobody'], /--arms must be one of none, auto.*, got "nobody"/],
    ['lab:breaker', ['--seeds', '1.5'], /--seeds must be a whole number, got "1.5"/],
    ['demo', ['--rate', 'many'], /--rate must be a number from 1 to 20000, got "many"/],
  ])('%s %j is refused with its usage', (task, args, problem) => {
    const { status, stdout, stderr } = run(task, ...args);
    expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
    expect(stderr).toMatch(problem);
    expect(stderr).toMatch(/\nnpm run /);
    expect(stderr).not.toMatch(/ at .*\.ts:\d/); // a stack trace tells a user nothing
  });
});
