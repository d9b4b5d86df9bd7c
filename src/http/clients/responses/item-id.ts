const idForm = /^[a-z]+_([0-9a-f]{32})_(\d{1,9})$/;

/** The id of an item of a response, which tells where it is found again. */
export function itemId(prefix: string, responseId: string, index: number): string {
  return `${prefix}_${responseId.slice('resp_'.length)}_${index}`;
}

/** Where an item is by its id; undefined for an id that no item of ours has. */
export function placeOfItem(id: string): { readonly responseId: string; readonly index: number } | undefined {
  const [, response, index] = idForm.exec(id) ?? [];
  return response === undefined ? undefined : { responseId: `resp_${response}`, index: Number(index) };
}
