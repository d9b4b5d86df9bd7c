const idForm = /^[a-z]+_([0-9a-f]{32})_(in)?(\d{1,9})$/;

/** Where an item is: its index in the input or in the output of a response. */
interface ItemPlace {
  readonly responseId: string;
  readonly of: 'input' | 'output';
  readonly index: number;
}

/** The id of an item of a response, which tells where it is found again. */
export function itemId(prefix: string, { responseId, of, index }: ItemPlace): string {
  return `${prefix}_${responseId.slice('resp_'.length)}_${of === 'input' ? 'in' : ''}${index}`;
}

/** Where an item is by its id; undefined for an id that no item of ours has. */
export function placeOfItem(id: string): ItemPlace | undefined {
  const [, response, input, index] = idForm.exec(id) ?? [];
  if (response === undefined) return undefined;
  return { responseId: `resp_${response}`, of: input === undefined ? 'output' : 'input', index: Number(index) };
}
