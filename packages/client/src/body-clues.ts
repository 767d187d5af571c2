/** True for an error of zlib, Brotli or Zstandard, each of which has codes of its own: the answer cannot be decoded. */
export function isOfDecoder(error: unknown): boolean {
  const code = String((error as { code?: unknown } | null | undefined)?.code);
  return /^(Z_|ERR__ERROR_|ERR_BROTLI_|ZSTD_)/.test(code);
}

/** True for a Node stream that has given all it has, and has not ended. */
export function isWaitedFor(stream: unknown): boolean {
  const { readableFlowing, readableLength, readableEnded } = Object(stream) as {
    readonly readableFlowing?: boolean | null;
    readonly readableLength?: number;
    readonly readableEnded?: boolean;
  };
  return readableFlowing === true && readableLength === 0 && !readableEnded;
}
