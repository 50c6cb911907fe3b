import type { Io } from '../command.ts'

/** Asks on a terminal only; anything but yes is no. */
export async function asks({ stdin, stderr }: Io, question: string): Promise<boolean> {
  if (!stderr.isTTY) return false
  const answer = await ask({ stdin, stderr }, `${question} [y/N]`)
  return /^y(es)?$/i.test(answer)
}

/** The line that somebody types behind a question. */
export async function ask({ stdin, stderr }: Pick<Io, 'stdin' | 'stderr'>, question: string): Promise<string> {
  stderr.write(`${question} `)
  for await (const chunk of stdin) return Buffer.from(chunk).toString().trim()
  return ''
}
