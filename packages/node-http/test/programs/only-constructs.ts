// Everything is made, nothing is served: the process must end by itself.
import { createServer, IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { createGuard } from '@elimit/core';
import { arrivalOf, loopMonitor, protect, RequestLimit } from '../../src/index.js';

loopMonitor().watch(createGuard({ limit: 'auto' }));
arrivalOf(new IncomingMessage(new Socket()));
protect(createServer(), { limit: 10 });
console.log(typeof new RequestLimit('auto', {}, { defaultName: 'app', methodNameOf: () => 'x' }));
