import { type ParseArgsConfig, parseArgs } from 'node:util';

/**
 * What a command is told. `--help` prints its usage and ends the process; what it cannot use is named, with the usage,
 * and ends it with status 2.
 */
export class CommandLine {
  readonly #usage: string;

  constructor(usage: string) {
    this.#usage = usage.trimEnd();
  }

  /** As `parseArgs`; `--help` is known everywhere. */
  read<const T extends ParseArgsConfig>(config: T): ReturnType<typeof parseArgs<T>> {
    const { args = process.argv.slice(2) } = config;
    if (args.includes('--help')) {
      console.log(this.#usage);
      process.exit(0);
    }
    try {
      return parseArgs<T>(config);
    } catch (error) {
      return this.refuse((error as Error).message);
    }
  }

  refuse(problem: string): never {
    console.error(`${problem}\n\n${this.#usage}`);
    process.exit(2);
  }

  number(name: string, text: string, least: number, most: number): number {
    const value = Number(text);
    if (text.trim() !== '' && value >= least && value <= most) return value;
    return this.refuse(`--${name} must be a number from ${least} to ${most}, got ${quoted(text)}`);
  }

  whole(name: string, text: string, least: number, most: number): number {
    const value = this.number(name, text, least, most);
    if (Number.isInteger(value)) return value;
    return this.refuse(`--${name} must be a whole number, got ${quoted(text)}`);
  }

  oneOf<T extends string>(name: string, text: string, known: readonly T[]): T {
    const found = known.find((one) => one === text);
    return (
      found ?? this.refuse(`--${name} must be one of ${known.join(', ')}, got ${quoted(text)}`)
    );
  }

  /** Several, with commas between them. */
  listOf<T extends string>(name: string, text: string, known: readonly T[]): readonly T[] {
    return text.split(',').map((part) => this.oneOf(name, part, known));
  }
}

function quoted(text: string): string {
  return JSON.stringify(text);
}
