/** The version of Precast. A constant, so that no code has to locate package.json at run time. */
export const VERSION = "0.1.0";
