const KEPT = 64
const idle: AbortController[] = []

/** A controller whose signal has not aborted. Making one takes longer than all else that a call does before it is sent. */
export const borrowController = (): AbortController => idle.pop() ?? new AbortController()

/** Takes it back when nothing listens to it any more; one that has aborted is of no use. */
export function returnController(controller: AbortController): void {
  if (!controller.signal.aborted && idle.length < KEPT) idle.push(controller)
}
