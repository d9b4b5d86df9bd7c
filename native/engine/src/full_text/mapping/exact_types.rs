//! Document types that differ in whether the strings of a path are whole values.

/// The document types whose strings at a path are whole values. Those of the others lie in the path's column too, where
/// nothing but orders may see them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExactTypes {
    /// The declared types.
    pub by_name: Vec<(String, bool)>,
    /// Documents of a type that is not declared.
    pub of_others: bool,
    /// Documents that name no type.
    pub of_unnamed: bool,
}

impl ExactTypes {
    /// What all of them are; `None` where they differ.
    pub fn agreed(&self) -> Option<bool> {
        let mut all = self.by_name.iter().map(|(_, is_exact)| *is_exact).chain([self.of_unnamed]);
        all.all(|is_exact| is_exact == self.of_others).then_some(self.of_others)
    }
}
