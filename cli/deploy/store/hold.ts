/** One deploy at a time: what a deploy has while it may write. */

export type Hold = {
  /** Throws DeployLockedError when another deploy may have taken over. */
  readonly check: () => void;
  /** False where the store knows no conditions: then two deploys at the same moment are not kept apart. */
  readonly conditional: boolean;
  readonly release: () => Promise<void>;
};

export class DeployLockedError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "DeployLockedError";
  }
}
