/** A guess where a provider names no tokens. Contract: kernel-1.md 14.3. */
export const estimateTokens = (text: string): number => Math.ceil(Buffer.byteLength(text) / 4)
