import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { accessSync, constants, mkdtempSync, rmSync } from 'node:fs';
import { createConnection, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { describe } from '@jest/globals';

const NAMES = ['valkey-server', 'redis-server'];
const DIRS = [...(process.env.PATH ?? '').split(delimiter), '/usr/bin', '/usr/local/bin'];

/** The server's program: as the runner of the tests set it, or one on the path. */
function program(): string | undefined {
  const named = process.env.ELIMIT_REDIS_SERVER;
  const files = DIRS.flatMap((dir) => NAMES.map((name) => join(dir, name)));
  return [...(named === undefined ? [] : [named]), ...files].find((file) => {
    try {
      accessSync(file, constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

const { skip } = describe;

/** `describe` where a Redis can be had; elsewhere skipped in plain words, except in CI, where it fails. */
export const describeRedis = program() !== undefined || process.env.CI ? describe : skip;
if (describeRedis === skip) {
  process.stderr.write(`skipped: tests against Redis: none of ${NAMES.join(', ')} is here\n`);
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}

function ping(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createConnection({ port, host: '127.0.0.1' }, () => socket.write('PING\r\n'));
    socket.once('data', (data) => {
      socket.destroy();
      resolve(data.toString().startsWith('+PONG'));
    });
    socket.once('error', () => resolve(false));
  });
}

/** A real server on a free port. It never outlives this process, however that ends. */
export class RedisServer {
  readonly #dir = mkdtempSync(join(tmpdir(), 'elimit-redis-'));
  readonly #extra: readonly string[];
  #child: ChildProcess | undefined;
  #pid = 0;

  private constructor(
    readonly port: number,
    extra: readonly string[],
  ) {
    this.#extra = extra;
  }

  static async start(...extra: string[]): Promise<RedisServer> {
    const server = new RedisServer(await freePort(), extra);
    await server.up();
    return server;
  }

  get url(): string {
    return `redis://127.0.0.1:${this.port}`;
  }

  /** Starts it, on the port that it had. */
  async up(): Promise<void> {
    const bin = program();
    if (bin === undefined) throw new Error(`none of ${NAMES.join(', ')} is on this machine`);
    const args = [
      '--port',
      `${this.port}`,
      '--bind',
      '127.0.0.1',
      '--save',
      '',
      '--dir',
      this.#dir,
    ];
    // `cat` ends when this process does, also by SIGKILL: then the server is ended too
    const supervise =
      '"$@" >/dev/null 2>&1 & pid=$!; echo $pid; cat >/dev/null; kill -9 $pid; wait $pid';
    this.#child = spawn('sh', ['-c', supervise, 'sh', bin, ...args, ...this.#extra], {
      stdio: ['pipe', 'pipe', 'ignore'],
    });
    this.#pid = await new Promise<number>((resolve) =>
      this.#child?.stdout?.once('data', (data) => resolve(Number(String(data)))),
    );
    const until = Date.now() + 10_000;
    while (!(await ping(this.port))) {
      if (Date.now() > until) throw new Error('redis-server did not start within 10 s');
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }

  /** Ends it at once; what it held is gone. */
  async kill(): Promise<void> {
    const child = this.#child;
    if (child === undefined) return;
    this.#child = undefined;
    const exited = new Promise((resolve) => child.once('exit', resolve));
    child.stdin?.end();
    await exited;
  }

  pause(): void {
    process.kill(this.#pid, 'SIGSTOP');
  }

  resume(): void {
    process.kill(this.#pid, 'SIGCONT');
  }

  /** Runs a command, in its own short connection. */
  command(...args: string[]): string {
    return execFileSync('redis-cli', ['-p', `${this.port}`, ...args], { encoding: 'utf8' }).trim();
  }

  async stop(): Promise<void> {
    await this.kill();
    rmSync(this.#dir, { recursive: true, force: true });
  }
}
