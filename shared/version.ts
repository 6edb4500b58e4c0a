/** The version of Precast. Its own constant, so that no program has to find its package file. */
export const VERSION = "0.1.0";
