/** So much of a text at most, in UTF-16 units, without half a character at its end: no other program reads such JSON. */
export const clip = (text: string, max: number): string => text.slice(0, max).replace(/[\ud800-\udbff]$/, '')
