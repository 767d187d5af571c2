import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { basename, dirname, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

/** What a reader needs to judge a figure, or to take it again. */
export interface Provenance {
  readonly command: string;
  readonly commit: string;
  /** True if the sources that have a say in the figures were not those of the commit. */
  readonly uncommitted: boolean;
  readonly date: string;
  /** Of Node, and of the packages that were measured or compared with. */
  readonly versions: Readonly<Record<string, string>>;
  readonly machine: { readonly cpus: number; readonly model: string; readonly platform: string };
}

export interface ProvenanceOptions {
  /** What was typed, without its arguments. */
  readonly command: string;
  /** Paths from the root of the repository. */
  readonly sources: readonly string[];
  /** Names of packages in its `node_modules`. */
  readonly packages: readonly string[];
}

const ROOT = new URL('../../../', import.meta.url);

/** Where and of what the figures of this process are taken. */
export function provenanceOf({ command, sources, packages }: ProvenanceOptions): Provenance {
  return {
    command: [command, ...process.argv.slice(2).map(withoutPlace)].join(' '),
    commit: git('rev-parse', '--short', 'HEAD'),
    uncommitted: git('status', '--porcelain', '--', ...sources) !== '',
    date: new Date().toISOString(),
    versions: {
      node: process.version,
      ...Object.fromEntries(packages.map((name) => [name, versionOf(name)])),
    },
    machine: { cpus: cpus().length, model: cpus()[0]?.model ?? '', platform: process.platform },
  };
}

/** The same as lines of text. */
export function provenanceLines(of: Provenance): string[] {
  const versions = Object.entries(of.versions).map((pair) => pair.join(' '));
  return [
    of.command,
    `commit ${of.commit}${of.uncommitted ? ' and changes' : ''}, ${of.date}; ${of.machine.cpus} cpus (${of.machine.model})`,
    versions.join(', '),
  ];
}

/** Writes figures as JSON, and beside it, with the ending `.txt`, what was printed. */
export function saveReport(file: string, report: object, lines: readonly string[]): void {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, `${JSON.stringify(report, null, 2)}\n`);
  writeFileSync(file.replace(/(\.json)?$/, '.txt'), `${lines.join('\n')}\n`);
}

/** A ratio, and what it must hold; shown for comparison if there is neither bound. */
export interface RatioMark {
  readonly ratio: number;
  readonly least?: number;
  readonly most?: number;
}

export function holds({
  ratio,
  least = Number.NEGATIVE_INFINITY,
  most = Infinity,
}: RatioMark): boolean {
  return ratio >= least && ratio <= most;
}

export function markLines(marks: Readonly<Record<string, RatioMark>>): string[] {
  return Object.entries(marks).map(([name, mark]) => {
    const { ratio, least, most } = mark;
    const bound = least === undefined ? `≤ ${most}` : `≥ ${least}`;
    const judged = least !== undefined || most !== undefined;
    return `${judged ? (holds(mark) ? 'ok   ' : 'SHORT') : '     '} ${name}: ${ratio.toFixed(2)}${judged ? ` ${bound}` : ''}`;
  });
}

/** A path as anybody could type it who has a clone: where this one stands is nobody's business. */
function withoutPlace(arg: string): string {
  if (!arg.includes('/')) return arg;
  const inside = relative(fileURLToPath(ROOT), resolve(arg));
  return inside.startsWith('..') ? basename(arg) : inside;
}

function git(...args: string[]): string {
  try {
    return execFileSync('git', args, {
      cwd: ROOT,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    }).trim();
  } catch {
    return 'unknown'; // not a clone
  }
}

function versionOf(name: string): string {
  const file = new URL(`node_modules/${name}/package.json`, ROOT);
  return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version;
}
