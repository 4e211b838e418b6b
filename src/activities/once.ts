/** Makes a value at the first call and gives the same to all later ones: what an effect needs before and after it begins. */
export function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined;
  return () => {
    made ??= make();
    return made;
  };
}
