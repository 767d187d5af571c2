import type { Socket } from 'node:net';
import { type Attempt, addressTimeoutMs, type Connections, connectInTime } from '@elimit/client';
import { Agent, buildConnector, type Dispatcher } from 'undici';

/** undici's connections to an endpoint; a TCP connection has a time limit of its own. */
class UndiciConnections implements Connections {
  readonly #create: () => Agent;
  #agent: Agent;

  constructor(create: () => Agent) {
    this.#create = create;
    this.#agent = create();
  }

  get dispatcher(): Dispatcher {
    return this.#agent;
  }

  /** Requests that run finish on the old agent. */
  dropIdle(): void {
    void closed(this.#agent);
    this.#agent = this.#create();
  }

  retire(): void {
    void closed(this.#agent);
  }
}

async function closed(agent: Agent): Promise<void> {
  try {
    await agent.close();
  } catch {
    // closed before
  }
}

/** The dispatcher that the endpoint of a try keeps for undici. */
export function dispatcherOf(attempt: Attempt): Dispatcher {
  const { connectTimeoutMs, endpoint } = attempt;
  const kind = Symbol.for(`@elimit/fetch/connections/${connectTimeoutMs}`);
  return attempt.connections(kind, (connected) => {
    const connect = buildConnector({
      ...endpoint.tls,
      timeout: 0, // undici's own has TLS in it
      autoSelectFamilyAttemptTimeout: addressTimeoutMs(connectTimeoutMs),
    } as buildConnector.BuildOptions);
    const connectTimed: buildConnector.connector = (options, callback) => {
      // its type hides that it gives the socket
      const socket = connect(options, callback) as unknown as Socket;
      connectInTime(socket, options.hostname, { connectTimeoutMs, connected });
    };
    return new UndiciConnections(() => new Agent({ connect: connectTimed }));
  }).dispatcher;
}
