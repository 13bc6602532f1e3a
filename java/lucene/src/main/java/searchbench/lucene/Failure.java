package searchbench.lucene;

/** Why a request was not done: the status of its reply and one sentence for a person. */
final class Failure extends Exception {
  private static final long serialVersionUID = 1L;

  final int status;

  private Failure(int status, String sentence) {
    super(sentence, null, false, false);
    this.status = status;
  }

  /** Status 1: the request is wrong, or could not be done. */
  static Failure error(String sentence, Object... values) {
    return new Failure(Frames.ERROR, String.format(sentence, values));
  }

  /** Status 2: this host cannot express it. */
  static Failure unsupported(String sentence, Object... values) {
    return new Failure(Frames.UNSUPPORTED, String.format(sentence, values));
  }
}
