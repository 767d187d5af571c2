// Brings what a command needs, without any dependency of its own: packages, builds, a Redis, a browser.
// Says what it does on stderr, so that stdout stays the command's.
import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { accessSync, constants, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('..', import.meta.url));
const STAMP = join(root, 'node_modules/.elimit-setup');
const say = (text) => process.stderr.write(`${text}\n`);

/** Stops with a sentence a person can act on. */
export function stop(text) {
  say(text);
  process.exit(1);
}

export function needNode() {
  const [major, minor] = process.versions.node.split('.').map(Number);
  if (major < 20 || (major === 20 && minor < 19)) {
    stop(`elimit needs Node 20.19 or newer; this is ${process.version}.`);
  }
}

/** Installs the packages of the lock file, unless those are the ones that are there. */
export function needPackages() {
  const wanted = createHash('sha256')
    .update(readFileSync(join(root, 'package-lock.json')))
    .digest('hex');
  if (existsSync(STAMP) && readFileSync(STAMP, 'utf8') === wanted) return;
  const fresh = !existsSync(join(root, 'node_modules'));
  say(
    `setting up: installing packages (${fresh ? 'a few minutes, once' : 'the lock file has changed'}) …`,
  );
  const npm = process.platform === 'win32' ? 'npm.cmd' : 'npm';
  // dev dependencies are what the tests are made of, whatever NODE_ENV says
  const args = [
    fresh ? 'ci' : 'install',
    '--include=dev',
    '--no-audit',
    '--no-fund',
    '--loglevel=error',
  ];
  const { status } = spawnSync(npm, args, {
    cwd: root,
    stdio: ['ignore', process.stderr, 'inherit'],
  });
  if (status !== 0)
    stop('setting up: npm could not install the packages; its message stands above.');
  mkdirSync(join(root, 'node_modules'), { recursive: true });
  writeFileSync(STAMP, wanted);
}

/** Builds every package that has changed since it was built. */
export function needBuild() {
  say('setting up: building packages …');
  const lerna = join(root, 'node_modules/lerna/dist/cli.js');
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [lerna, 'run', 'build', '--loglevel=error'],
    {
      cwd: root,
      encoding: 'utf8',
    },
  );
  if (status !== 0) stop(`setting up: the build failed\n${stdout}${stderr}`);
}

function onPath(names) {
  const dirs = (process.env.PATH ?? '').split(delimiter).concat('/usr/bin', '/usr/local/bin');
  for (const dir of dirs) {
    for (const name of names) {
      const file = join(dir, name);
      try {
        accessSync(file, constants.X_OK);
        return file;
      } catch {
        // not here
      }
    }
  }
  return undefined;
}

/** A program that tests need; where it may, it is installed as a Debian package, else its tests are skipped in plain words. */
function needProgram(what, names, debianPackage) {
  const found = onPath(names);
  if (found) return found;
  if (process.getuid?.() === 0 && onPath(['apt-get'])) {
    say(`setting up: installing ${debianPackage} by apt-get …`);
    // RUNLEVEL=1: the package must not start a daemon of its own
    const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' };
    try {
      execFileSync('apt-get', ['update', '-qq'], { stdio: ['ignore', 'ignore', 'inherit'], env });
      execFileSync('apt-get', ['install', '-y', '-qq', '--no-install-recommends', debianPackage], {
        stdio: ['ignore', 'ignore', 'inherit'],
        env,
      });
    } catch {
      say(`setting up: apt-get could not install ${debianPackage}`);
    }
  }
  const installed = onPath(names);
  if (!installed)
    say(`skipped: tests that need ${what}: none of ${names.join(', ')} is on this machine`);
  return installed;
}

/** Paths of the programs that tests need, as the environment variables that the tests read. */
export function needPrograms() {
  const redis = needProgram('a Redis', ['valkey-server', 'redis-server'], 'redis-server');
  const chromium = needProgram(
    'a browser',
    ['chromium', 'chromium-browser', 'google-chrome'],
    'chromium',
  );
  return {
    ...(redis && { ELIMIT_REDIS_SERVER: redis }),
    ...(chromium && { ELIMIT_CHROMIUM: chromium }),
  };
}
