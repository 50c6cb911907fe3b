export function breaches(file: string, source: string): string[]
