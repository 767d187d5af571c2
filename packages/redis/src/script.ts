import { createHash } from 'node:crypto';

/** Smaller batches are not leased: tokens that lie with one process are refused to the others. */
export const LEAST_BATCH = 5;

/** What a hash is answered with that holds no bucket, as Redis itself answers for what is no hash. */
const FOREIGN = 'WRONGTYPE a hash of another application';

/**
 * The whole of a bucket, in one hash: `t` tokens at `s` (microseconds of the server), the rate `r` and
 * burst `b` they were counted with, and for each process that leases an `h:` field with the end of its
 * lease and the tokens in it.
 *
 * ARGV: rate, burst, n, count (that many requests of n tokens, as many as fit, in order), back
 * (tokens given back), holder, leaseUs (above 0: lease; 0: this holder leaves; -1: no word about
 * leases), held (tokens of its lease that it still has), now (for tests; empty for the server's time).
 *
 * Replies: requests granted, tokens left, microseconds until the next one of n (-1 for never),
 * microseconds until full (-1), tokens added to the lease, live holders.
 */
export const TAKE_SCRIPT = `
local key = KEYS[1]
local rate, burst = tonumber(ARGV[1]), tonumber(ARGV[2])
local n, count, back = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local holder, lease, held = 'h:' .. ARGV[6], tonumber(ARGV[7]), tonumber(ARGV[8])
local now, told = tonumber(ARGV[9]), true
if not now then
  local time = redis.call('TIME')
  now, told = tonumber(time[1]) * 1000000 + tonumber(time[2]), false
end

local kept, gone, holders, others = {}, {}, 0, 0
local all = redis.call('HGETALL', key)
for i = 1, #all, 2 do
  local field, value = all[i], all[i + 1]
  if string.sub(field, 1, 2) == 'h:' then
    local ends, amount = string.match(value, '^(%d+):(.+)$')
    ends, amount = tonumber(ends or ''), tonumber(amount or '')
    if not ends or not amount then return redis.error_reply('${FOREIGN}') end
    if ends <= now then
      gone[#gone + 1] = field
    elseif field ~= holder then
      holders = holders + 1
      others = others + amount
    end
  else
    kept[field] = tonumber(value)
  end
end
if #all > 0 and not (kept.t and kept.s and kept.r and kept.b) then
  return redis.error_reply('${FOREIGN}')
end

local tokens, stamp = burst, now
if kept.t then
  stamp = kept.s
  -- callers' clocks may differ: the newest time counts. The server's own clock only ever goes back
  -- when it is set or a replica takes over: then time goes on from there, or nothing would come in
  if now > stamp then
    tokens = kept.t + (now - stamp) * kept.r / 1000000
    stamp = now
  else
    tokens = kept.t
    if not told then stamp = now end
  end
  tokens = math.min(tokens, kept.b, burst)
end
tokens = math.min(burst, tokens + back)

local granted = count
if n > 0 then granted = math.max(0, math.min(count, math.floor((tokens + 1e-9) / n))) end
tokens = tokens - granted * n

local extra = 0
if lease > 0 then
  holders = holders + 1
  -- a tenth of the fair share, no more than comes in while it lasts, and never above a tenth in all
  local most = math.min(burst / 10 / holders, rate * lease / 1000000 / holders, burst / 10 - others)
  -- of a small quota every token counts, and a few leased ones would save few calls
  if most >= ${LEAST_BATCH} and granted == count then
    extra = math.max(0, math.floor(math.min(most - held, tokens)))
  end
  tokens = tokens - extra
  redis.call('HSET', key, holder, string.format('%.0f:%.17g', now + lease, held + extra))
elseif lease == 0 then
  gone[#gone + 1] = holder
end
for i = 1, #gone do redis.call('HDEL', key, gone[i]) end

redis.call('HSET', key, 't', string.format('%.17g', tokens), 's', string.format('%.0f', stamp),
  'r', ARGV[1], 'b', ARGV[2])
local full, wait = -1, 0
if rate > 0 then full = math.max(0, math.ceil((burst - tokens) * 1000000 / rate)) end
if granted < count then
  wait = -1
  if rate > 0 and n <= burst then
    wait = math.max(1, math.ceil((n - tokens) * 1000000 / rate - 0.001 / math.max(1, rate)))
  end
end
-- full again means as good as new: then Redis forgets it. A stopped bucket is kept for a day
local ttl = full < 0 and 86400000 or math.ceil(full / 1000) + 1000
redis.call('PEXPIRE', key, string.format('%.0f', math.min(ttl + math.max(0, lease) / 1000, 3e12)))
return {granted, string.format('%.17g', tokens), string.format('%.0f', wait),
  string.format('%.0f', full), extra, holders}
`;

/** What `EVALSHA` calls it. */
export const TAKE_SHA: string = createHash('sha1').update(TAKE_SCRIPT).digest('hex');

/** One request to the script. */
export interface TakeCall {
  readonly rate: number;
  readonly burst: number;
  readonly n: number;
  readonly count: number;
  readonly back: number;
  readonly holder: string;
  readonly leaseUs: number;
  readonly held: number;
  /** For tests with clocks of their own; `undefined` for the server's time. */
  readonly nowUs: number | undefined;
}

export function argumentsOf(call: TakeCall): string[] {
  const { rate, burst, n, count, back, holder, leaseUs, held, nowUs } = call;
  return [
    `${rate}`,
    `${burst}`,
    `${n}`,
    `${count}`,
    `${back}`,
    holder,
    `${leaseUs}`,
    `${held}`,
    nowUs === undefined ? '' : `${nowUs}`,
  ];
}

/** The script's reply. */
export interface TakeReply {
  readonly granted: number;
  readonly tokens: number;
  readonly waitUs: number;
  readonly fullInUs: number;
  readonly extra: number;
  readonly holders: number;
}

/** The script says -1 for what never comes. */
function endless(us: number | undefined): number {
  return us === -1 ? Number.POSITIVE_INFINITY : (us as number);
}

export function replyOf(raw: unknown): TakeReply {
  if (!Array.isArray(raw) || raw.length !== 6) {
    throw new TypeError('the rate script answered with something else than six values');
  }
  // clients may be set to answer in Buffers
  const [granted, tokens, waitUs, fullInUs, extra, holders] = raw.map((value) =>
    Number(`${value}`),
  );
  return {
    granted: granted as number,
    tokens: tokens as number,
    waitUs: endless(waitUs),
    fullInUs: endless(fullInUs),
    extra: extra as number,
    holders: holders as number,
  };
}
