package com.twitter.common.net.pool;

/** Stands where Twitter's library is not: Sensei names its exception, and nothing throws it. */
public interface DynamicHostSet {
  /** Membership could not be watched. */
  class MonitorException extends Exception {
    private static final long serialVersionUID = 1L;

    public MonitorException(String message) {
      super(message);
    }
  }
}
