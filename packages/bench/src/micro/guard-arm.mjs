// One arm of call-arms.ts: `node guard-arm.mjs NAME` gives { ns } per call.
import { finish, steadyNs } from './cpu-time.mjs';
import { arms } from './guard-arms.mjs';

const { call, plain } = arms[process.argv[2]]();
const awaits = plain === undefined;
// many short turns: what else the machine does comes in spells
const calls = awaits ? 30_000 : 100_000;
finish({ ns: await steadyNs(plain ?? call, calls, { awaits, warmUp: 12, rounds: 21 }) });
