// npm run demo -- [outbound] [options]: shows on real sockets what protection does, and exits 1 if it did not help.
import { CommandLine } from '../command-line.js';
import type { Workload } from '../http/handlers.js';
import { run as outboundDemo } from './outbound.js';
import { DEMO_HANDLERS, overloadDemo } from './overload.js';

const command =
  new CommandLine(`npm run demo -- [options]            one service, bare and protected, under overload
  --handler NAME   ${DEMO_HANDLERS.join(', ')}, or all (default: cpu and async)
  --rate N         requests per second (default: 3 and 6 times what the handler can do)
  --seconds N      how long each run is measured (default: 2)
  --port N         port of the service (default: any free one)
  --json           the figures as JSON, nothing else
  --keep           goes on under load until Ctrl-C, for a look at the status page

npm run demo -- outbound [--help]      calls to nodes that break and return
`);

function handlersOf(text: string | undefined): readonly Workload[] {
  if (text === undefined) return ['cpu', 'async'];
  if (text === 'all') return DEMO_HANDLERS;
  return [command.oneOf('handler', text, DEMO_HANDLERS)];
}

async function overload(): Promise<number> {
  const { values, positionals } = command.read({
    allowPositionals: true,
    options: {
      handler: { type: 'string' },
      rate: { type: 'string' },
      seconds: { type: 'string', default: '2' },
      port: { type: 'string', default: '0' },
      json: { type: 'boolean', default: false },
      keep: { type: 'boolean', default: false },
    },
  });
  if (positionals.length > 0) command.refuse(`no demo named ${positionals.join(' ')}`);
  return overloadDemo({
    handlers: handlersOf(values.handler),
    rate: values.rate === undefined ? undefined : command.number('rate', values.rate, 1, 20_000),
    seconds: command.number('seconds', values.seconds, 1, 600),
    port: command.whole('port', values.port, 0, 65_535),
    json: values.json,
    keep: values.keep,
  });
}

const [name, ...rest] = process.argv.slice(2);
process.exitCode = name === 'outbound' ? await outboundDemo(rest) : await overload();
