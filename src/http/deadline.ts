/** The answer of `work`, or the error `late` when time is up first; the work itself goes on. */
export async function endBefore<T>(deadline: AbortSignal, work: Promise<T>, late: () => Error): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const expire = (): void => reject(late())
    deadline.addEventListener('abort', expire, { once: true })
    work.then(resolve, reject).finally(() => deadline.removeEventListener('abort', expire))
  })
}
