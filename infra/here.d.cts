/** The directory of this file. */
declare const here: string;
export = here;
