/** The lock of a store: only one deploy at a time has it and may write. */

export type StoreLock = {
  /** Throws DeployLockedError when another deploy may have taken over. */
  readonly check: () => void;
  /** False when the store ignores conditional writes: then two deploys that begin simultaneously are not kept apart. */
  readonly conditional: boolean;
  readonly release: () => Promise<void>;
};

export class DeployLockedError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "DeployLockedError";
  }
}
