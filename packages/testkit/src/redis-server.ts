import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { accessSync, constants, mkdtempSync, rmSync } from 'node:fs';
import { createConnection } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { freePort } from './free-port.js';

const NAMES = ['valkey-server', 'redis-server'];
const DIRS = [...(process.env.PATH ?? '').split(delimiter), '/usr/bin', '/usr/local/bin'];

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

/** A real Redis or Valkey on a free port, for tests and benches. It never outlives this process, however that ends. */
export class RedisServer {
  /** What is said where there is none. */
  static readonly MISSING = `none of ${NAMES.join(', ')} is on this machine`;

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

  /** The program: what `ELIMIT_REDIS_SERVER` names, or one on the path. `undefined` if there is none. */
  static program(): string | undefined {
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

  /**
   * Starts one and waits until it answers.
   *
   * @param extra - arguments of the program
   * @throws Error where there is no program, or it does not answer within 10 s
   */
  static async start(...extra: string[]): Promise<RedisServer> {
    const server = new RedisServer(await freePort(), extra);
    await server.up();
    return server;
  }

  /** `redis://…`, as both clients take it. */
  get url(): string {
    return `redis://127.0.0.1:${this.port}`;
  }

  /** Starts it, on the port that it had. */
  async up(): Promise<void> {
    const bin = RedisServer.program();
    if (bin === undefined) throw new Error(RedisServer.MISSING);
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

  /** Stops it in its tracks: connections stay, and nothing is answered. */
  pause(): void {
    process.kill(this.#pid, 'SIGSTOP');
  }

  resume(): void {
    process.kill(this.#pid, 'SIGCONT');
  }

  /** Runs a command by `redis-cli`, in its own short connection. */
  command(...args: string[]): string {
    return execFileSync('redis-cli', ['-p', `${this.port}`, ...args], { encoding: 'utf8' }).trim();
  }

  /** Ends it, and takes its folder away. */
  async stop(): Promise<void> {
    await this.kill();
    rmSync(this.#dir, { recursive: true, force: true });
  }
}
