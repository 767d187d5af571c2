// One server of express.ts: `node express-arm.mjs ARM`. Prints its port; for each line on stdin, the processor time
// used so far in microseconds.
import { rateLimit } from '@elimit/express';
import express from 'express';
import peer from 'express-rate-limit';

const MANY = 1_000_000_000;
const arms = {
  bare: () => undefined,
  elimit: () => rateLimit({ limit: MANY, windowMs: 60_000, registry: false }),
  'elimit without headers': () =>
    rateLimit({ limit: MANY, windowMs: 60_000, standardHeaders: false, registry: false }),
  'elimit, refusing': () => rateLimit({ limit: 0, registry: false }),
  'express-rate-limit': () =>
    peer({ limit: MANY, windowMs: 60_000, standardHeaders: 'draft-8', legacyHeaders: false }),
  'express-rate-limit, default headers': () => peer({ limit: MANY, windowMs: 60_000 }),
  'express-rate-limit, refusing': () =>
    peer({
      limit: 0,
      windowMs: 60_000,
      standardHeaders: 'draft-8',
      legacyHeaders: false,
      validate: false,
    }),
};

const app = express();
const limit = arms[process.argv[2]]();
if (limit !== undefined) app.use(limit);
app.get('/', (_req, res) => {
  res.send('ok');
});
const server = app.listen(0, '127.0.0.1', () => console.log(server.address().port));
process.stdin.on('data', () => {
  const { user, system } = process.cpuUsage();
  console.log(user + system);
});
process.stdin.on('end', () => process.exit(0));
